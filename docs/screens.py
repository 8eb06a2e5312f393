"""Look at the built site in Chromium, as wide as a desk's screen and as a phone's.

    python docs/screens.py site pictures

Writes a picture of each page below for each width, for a person to look at, and lists what sticks
out: code, tables and pictures that are wider than their column, and pages that scroll sideways.

Invariant: the exit status is 1 if something sticks out, and 2 without Chromium.
"""

import html
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

WIDTHS = {1280: 1600, 390: 2400}
"""The widths in pixels, each with the height of its picture."""
PAGES = (
    "",
    "install",
    "tutorials/first-steps",
    "tutorials/transformer",
    "tutorials/physicist",
    "tutorials/data-parallel",
    "how-to/from-pytorch",
    "explanation/tracing",
    "dtypes",
    "how-to/profile",
    "reference/random",
    "reference/plait",
)
# The page is in a frame, because Chromium's own window is never narrower than 500 pixels.
FRAME = """<body style="margin:0">
<iframe id=f src="/{page}" width={width} height={height} style="border:0"></iframe>
<pre id=found></pre><script>
document.getElementById("f").onload = () => setTimeout(() => {{
  const page = document.getElementById("f").contentDocument, found = [];
  const right = page.querySelector(".md-content").getBoundingClientRect().right + 1;
  for (const x of page.querySelectorAll(".md-content :is(pre, code, table, img)")) {{
    if (x.tagName == "TABLE" && {width} < 500) continue;  // a wide table scrolls on a phone
    const hidden = x.clientWidth && x.scrollWidth > x.clientWidth + 1;
    if (hidden || x.getBoundingClientRect().right > right)
      found.push(x.tagName + " " + x.textContent.slice(0, 60));
  }}
  const root = page.documentElement;
  if (root.scrollWidth > root.clientWidth + 1) found.push("PAGE " + root.scrollWidth);
  const lines = found.map(t => "@@" + t.replace(/\\s+/g, " "));
  document.getElementById("found").textContent = ["looked"].concat(lines).join("\\n");
}}, 500);
</script>"""


@contextmanager
def served(site: Path):
    """Serve a site and the frames on a free port; yield the port."""

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self):
            found = re.fullmatch(r"/frame/(\d+)/(\d+)/(.*)", self.path)
            if found is None:
                return super().do_GET()
            width, height, page = found.groups()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(FRAME.format(width=width, height=height, page=page).encode())

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()


def main(site: Path, pictures: Path) -> int:
    """Look at every page; return the exit status."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("Chromium is not installed", file=sys.stderr)
        return 2
    pictures.mkdir(parents=True, exist_ok=True)
    wrong = 0
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    with served(site) as port:
        for page in PAGES:
            for width, height in WIDTHS.items():
                folder = f"{page}/" if page else ""
                url = f"http://127.0.0.1:{port}/frame/{width}/{height}/{folder}"
                picture = pictures / f"{page.replace('/', '-') or 'index'}-{width}.png"
                look = (chromium, *options, f"--window-size={max(width, 500)},{height}")
                waited = "--virtual-time-budget=5000"
                subprocess.run([*look, waited, f"--screenshot={picture}", url], capture_output=True)
                told = subprocess.run(
                    [*look, waited, "--dump-dom", url], capture_output=True, text=True
                )
                dom = told.stdout.partition("<script>")[0]
                for line in re.findall(r"@@(.*)", dom) if "looked" in dom else ["it does not load"]:
                    print(f"{page or 'index'} at {width}: {html.unescape(line)}")
                    wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
