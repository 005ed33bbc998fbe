"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const splits = Object.keys(data.counts);
  const merges = data.merges.length / 2;
  const left = (id) => data.merges[2 * (id - 256)];
  const right = (id) => data.merges[2 * (id - 256) + 1];
  const size = 256 + merges + data.special.length;

  // The bytes of every id: the bytes, what merges join, special tokens.
  const utf8 = new TextEncoder();
  const vocab = [];
  for (let id = 0; id < 256; id++) vocab.push([id]);
  for (let id = 256; id < 256 + merges; id++) vocab.push(vocab[left(id)].concat(vocab[right(id)]));
  for (const text of data.special) vocab.push(Array.from(utf8.encode(text)));

  // Text with \xNN for each byte that is not part of a character, as Python writes it.
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const hex = (byte) => byte.toString(16).padStart(2, "0");
  function decode(bytes) {
    try {
      return strict.decode(new Uint8Array(bytes));
    } catch {
      for (let length = 4; length; length--) {
        const start = bytes.slice(0, length);
        if (start.length < length) continue;
        try {
          const character = strict.decode(new Uint8Array(start));
          return character + decode(bytes.slice(length));
        } catch { /* not a character, or more than one */ }
      }
      return "\\x" + hex(bytes[0]) + decode(bytes.slice(1));
    }
  }
  const texts = [];
  const textOf = (id) => (texts[id] ??= decode(vocab[id]));

  // Every character to be seen; markup.py has the same list.
  const unseen = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
  function escaped(character) {
    const point = character.codePointAt(0);
    if (point <= 0x1f || point === 0x7f) return "\\x" + hex(point);
    const digits = point.toString(16);
    return point <= 0xffff ? "\\u" + digits.padStart(4, "0") : "\\U" + digits.padStart(8, "0");
  }
  const visible = (text) =>
    text.replaceAll(" ", "␣").replaceAll("\t", "⇥").replaceAll("\n", "↵").replace(unseen, escaped);
  const label = (id) => visible(textOf(id));

  const number = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  const bytesOf = (id) => vocab[id].map(hex).join(" ");
  const isMerge = (id) => id >= 256 && id < 256 + merges;
  const kind = (id) => (id < 256 ? "a byte" : isMerge(id) ? `rank ${number(id - 256)}` : "special");
  const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  const chip = (id, more = "") =>
    element("span", { class: `chip ${more}`.trim(), title: `id ${id}, bytes ${bytesOf(id)}` }, label(id));

  // A page in tokens: one list, walked through with the pointer or the arrow keys.
  const text = find("text");
  const options = text.children;
  let current = -1;
  function show(place) {
    if (place === current || !options[place]) return;
    options[current]?.setAttribute("aria-selected", "false");
    current = place;
    const option = options[place];
    const id = Number(option.dataset.i);
    const parts = isMerge(id) ? [left(id), right(id)] : [];
    const facts = [
      `id ${id}`,
      `${plural(vocab[id].length, "byte")} ${bytesOf(id)}`,
      kind(id),
      ...splits.map((split) => `${number(data.counts[split][id])} in ${split}`),
    ];
    option.setAttribute("aria-selected", "true");
    option.setAttribute("aria-label", [label(id), ...facts].join(", "));
    text.setAttribute("aria-activedescendant", option.id);
    const line = element("p", {}, ...facts.map((fact) => element("span", {}, fact)));
    const made = parts.length ? [" made of ", chip(parts[0]), " ", chip(parts[1])] : [];
    find("token").replaceChildren(element("p", {}, element("strong", {}, label(id)), ...made), line);
  }
  function reveal(place) {
    show(Math.max(0, Math.min(options.length - 1, place)));
    options[current].scrollIntoView({ block: "nearest" });
  }
  let pointer = "";
  for (const kindOfEvent of ["pointermove", "click"])
    text.addEventListener(kindOfEvent, (event) => {
      const place = `${event.screenX} ${event.screenY}`;
      if (kindOfEvent === "pointermove" && place === pointer) return; // the page moved under it
      pointer = place;
      const option = event.target.closest("[role=option]");
      if (option) show(Number(option.id.slice(1)));
    });
  text.addEventListener("focus", () => current < 0 && show(0));
  text.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const here = Math.max(current, 0);
    const line = (direction) => {
      const from = options[here].getBoundingClientRect();
      for (let place = here + direction; options[place]; place += direction) {
        const to = options[place].getBoundingClientRect();
        const next = direction * (to.top - from.top) > from.height / 2;
        if (next && direction * (to.left - from.left) >= 0) return place;
        if (direction * (to.top - from.top) > 2.5 * from.height) return place;
      }
      return direction < 0 ? 0 : options.length - 1;
    };
    const moves = {
      ArrowLeft: () => here - 1, ArrowRight: () => here + 1, Home: () => 0,
      End: () => options.length - 1, ArrowUp: () => line(-1), ArrowDown: () => line(1),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    reveal(moves[event.key]());
  });

  // How a word is built: the pair of the lowest rank, wherever it stands, until there is none.
  let ranks;
  const pairKey = (a, b) => a * 0x200000 + b;
  function build(bytes) {
    if (!ranks) {
      ranks = new Map();
      for (let id = 256; id < 256 + merges; id++) ranks.set(pairKey(left(id), right(id)), id);
    }
    let ids = bytes;
    const steps = [];
    for (;;) {
      let best = Infinity;
      for (let i = 1; i < ids.length; i++)
        best = Math.min(best, ranks.get(pairKey(ids[i - 1], ids[i])) ?? Infinity);
      if (best === Infinity) return { ids, steps };
      const merged = [];
      for (let i = 0; i < ids.length; i++) {
        if (ids[i] === left(best) && ids[i + 1] === right(best)) {
          merged.push(best);
          i++;
        } else merged.push(ids[i]);
      }
      ids = merged;
      steps.push({ id: best, ids });
    }
  }
  function showWord() {
    const typed = find("word").value;
    const start = Array.from(utf8.encode(typed.toWellFormed?.() ?? typed));
    const { ids, steps } = build(start);
    const rows = [{ ids: start }, ...steps].map(({ id, ids: now }) => {
      const chips = element("span", {}, ...now.map((i) => chip(i, i === id ? "new" : "")));
      const said = id === undefined ? `${plural(now.length, "byte")}` :
        `rank ${number(id - 256)}: ${label(left(id))} + ${label(right(id))}`;
      return element("li", {}, chips, element("small", {}, said));
    });
    find("steps").replaceChildren(...(start.length ? rows : []));
    find("word-says").textContent = start.length
      ? `${plural(start.length, "byte")}, ${plural(steps.length, "merge")}, ` +
        `${plural(ids.length, "token")}: ${ids.join(" ")}`
      : "Nothing typed: no tokens.";
  }
  find("word").value = data.word;
  find("word").addEventListener("input", showWord);
  showWord();

  // The size of the vocabulary: a mark that moves along the curve.
  const slider = find("size");
  const cursor = document.querySelector("#sizes-plot .cursor");
  function showSize() {
    const at = Number(slider.value);
    const values = Object.entries(data.sizes.curves).map(
      ([split, curve]) => `${split} ${curve[at].toFixed(3)}`);
    const said = `${number(data.sizes.ids[at])} ids: ${values.join(", ")} bytes per token`;
    find("size-says").textContent = said;
    slider.setAttribute("aria-valuetext", said);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, data.sizes.x[at]);
  }
  slider.addEventListener("input", () => {
    cursor.setAttribute("visibility", "visible");
    showSize();
  });
  showSize();

  // Every token: only the rows in view are in the page.
  const list = find("list");
  const [thead, tbody] = [list.querySelector("thead"), list.querySelector("tbody")];
  const partsOf = (id) => (isMerge(id) ? `${label(left(id))} + ${label(right(id))}` : kind(id));
  const columns = [
    { name: "id", cell: String, value: (id) => id, narrow: true },
    { name: "token", cell: label, value: textOf, left: true },
    { name: "bytes", cell: bytesOf, value: bytesOf, left: true },
    { name: "length", cell: (id) => String(vocab[id].length), value: (id) => vocab[id].length, narrow: true },
    { name: "rank", cell: (id) => (isMerge(id) ? String(id - 256) : "–"), value: (id) => (isMerge(id) ? id - 256 : -1), narrow: true },
    { name: "parts", cell: partsOf, value: partsOf, left: true },
    ...splits.map((split) => ({
      name: split, cell: (id) => number(data.counts[split][id]), value: (id) => data.counts[split][id],
      narrow: true, down: true,
    })),
  ];
  let found = [];
  let sorted = { column: columns[0], down: false };
  const ROW = 32;
  function rowOf(id, index) {
    const row = element("tr", { "aria-rowindex": index + 2 });
    columns.forEach((column, place) => {
      const said = column.cell(id);
      const attributes = column.left ? { class: "left", title: said } : {};
      if (!place) attributes.scope = "row";
      row.append(element(place ? "td" : "th", attributes, said));
    });
    return row;
  }
  function spacer(rows) {
    const cell = element("td", { colspan: columns.length });
    cell.style.height = `${rows * ROW}px`;
    return element("tr", { class: "spacer", "aria-hidden": "true" }, cell);
  }
  let drawn;
  function draw(always) {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 20);
    const last = Math.min(found.length, first + Math.ceil(list.clientHeight / ROW) + 40);
    if (!always && drawn === `${first}-${last}`) return;
    drawn = `${first}-${last}`;
    const rows = found.slice(first, last).map((id, place) => rowOf(id, first + place));
    tbody.replaceChildren(spacer(first), ...rows, spacer(found.length - last));
  }
  function matcher(query) {
    if (/^#\d+$/.test(query)) return (id) => id === Number(query.slice(1));
    if (/^x[0-9a-f]{2}( ?[0-9a-f]{2})*$/i.test(query)) {
      const wanted = query.slice(1).replaceAll(" ", "").toLowerCase().match(/../g).join(" ");
      return (id) => ` ${bytesOf(id)} `.includes(` ${wanted} `);
    }
    const wanted = query.replaceAll("␣", " ").replaceAll("↵", "\n").replaceAll("⇥", "\t");
    return (id) => textOf(id).includes(wanted);
  }
  function search() {
    const query = find("search").value;
    const matches = matcher(query);
    const { value } = sorted.column;
    found = [];
    for (let id = 0; id < size; id++) if (!query || matches(id)) found.push(id);
    const keys = sorted.column === columns[0] && !sorted.down ? null : new Map(found.map((id) => [id, value(id)]));
    if (keys) {
      const sign = sorted.down ? -1 : 1;
      found.sort((a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        return x < y ? -sign : x > y ? sign : a - b;
      });
    }
    find("search-says").textContent = query
      ? `${number(found.length)} of ${plural(size, "token")} match.`
      : `${plural(size, "token")}.`;
    list.querySelector("table").setAttribute("aria-rowcount", found.length + 1);
    list.scrollTop = 0;
    draw(true);
  }
  const heads = columns.map((column) => {
    const kinds = [column.left && "left", column.narrow && "narrow"].filter(Boolean).join(" ");
    const button = element("button", { type: "button" }, column.name);
    const head = element("th", { scope: "col", class: kinds }, button);
    button.addEventListener("click", () => {
      const again = sorted.column === column;
      sorted = { column, down: again ? !sorted.down : Boolean(column.down) };
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      search();
    });
    return head;
  });
  heads[0].setAttribute("aria-sort", "ascending");
  thead.append(element("tr", { "aria-rowindex": 1 }, ...heads));
  find("search").addEventListener("input", search);
  list.addEventListener("scroll", () => draw(false));
  addEventListener("resize", () => draw(true));
  search();
})();
