"""A headless Chromium of the system, and pages in it of which everything untoward is noted."""

import contextlib
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")
# No sandbox, since CI runs as root; nothing that would ask a network by itself.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip


@contextlib.contextmanager
def chromium():
    """A browser to open pages with, or what is missing."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        yield f"needs Chromium ({', '.join(NAMES)}): apt-get install chromium"
        return
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        yield "needs the package playwright: pip install playwright"
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, path, *, width=1280, height=800, dark=False, script=True):
    """A file in a page; at the end it must have had no error and asked for nothing but itself."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
    )
    page = context.new_page()
    noted = []
    page.on("console", lambda message: noted.append(message.text))
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.on("request", lambda request: noted.append(request.url))
    page.goto(path.as_uri())
    yield page
    page.wait_for_load_state("networkidle")
    context.close()
    assert noted == [path.as_uri()]
