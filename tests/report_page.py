"""What the tests of the report share: the command, and the data in its page."""

import json
import re
import subprocess
import sys

import pipeline


def bytepair(project, *arguments, **options):
    program = "from bytepair.cli import main; main(prog_name='bytepair')"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=project, check=options.pop("check", True),
        env=pipeline.environment(pipeline.ROOT, **options.pop("environment", {})),
        capture_output=True, **options,
    )  # fmt: skip


def data_of(page):
    return json.loads(
        re.search(r'(?s)<script type="application/json" id="data">(.*?)</script>', page)[1]
    )
