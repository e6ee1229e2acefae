"""The report pages' frame and looks."""

from html import escape

FIGURE = '<figure><div class="scroll">{svg}</div><figcaption>{caption}</figcaption></figure>'

CSS = """
:root { --ink: #1c2430; --faint: #66717f; --rule: #d9dee5; --paper: #ffffff; --met: #0f7b6c; --missed: #c2335b; }
* { box-sizing: border-box; }
body { margin: 0; background: #eef1f4; color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 2.2rem 1.2rem 4rem; }
section { background: var(--paper); border: 1px solid var(--rule); border-radius: 10px; padding: 1.1rem 1.4rem 1.3rem;
  margin: 1.1rem 0; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 0 0 .5rem; }
h3 { font-size: 1rem; margin: 1.3rem 0 .3rem; }
p { margin: .3rem 0 .7rem; max-width: 80ch; }
small, figcaption, dt { color: var(--faint); font-size: .86rem; font-weight: 400; }
code { font-size: .88rem; overflow-wrap: anywhere; }
.lead { color: var(--faint); margin-bottom: 1.2rem; }
.verdict { border-left: 6px solid var(--met); font-size: 1.12rem; }
.verdict.missed { border-left-color: var(--missed); }
.verdict.unknown { border-left-color: var(--faint); }
ul.criteria { list-style: none; margin: .8rem 0 0; padding: 0; display: grid; gap: .55rem 1.4rem;
  grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); font-size: .93rem; }
ul.criteria li { padding-left: 1.7rem; position: relative; }
.mark { position: absolute; left: 0; font-weight: 700; width: 1.2rem; text-align: center; color: var(--faint); }
.met > .mark, .right { color: var(--met); }
.missed > .mark, .wrong { color: var(--missed); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
table.cells { width: 100%; font-size: .95rem; font-variant-numeric: tabular-nums; }
table.cells th { text-align: left; font-weight: 500; color: var(--faint); font-size: .84rem; vertical-align: bottom; }
table.cells th, table.cells td { padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--rule); }
table.cells b + small, small.paper { white-space: nowrap; }
details summary { cursor: pointer; color: var(--faint); }
.badge { display: inline-block; padding: 0 .55rem; border-radius: 1rem; background: var(--c); color: #fff;
  font-size: .84rem; font-weight: 600; }
table.strip th { font-size: .8rem; font-weight: 500; color: var(--faint); padding: 0 .3rem .25rem; text-align: center; }
table.strip th.end { color: var(--c); font-weight: 700; border-bottom: 3px solid var(--c); padding-bottom: .1rem; }
table.strip th.cue { vertical-align: middle; color: var(--ink); }
table.strip td { padding: .3rem; text-align: center; vertical-align: top; font-size: .82rem; }
table.strip td.right img { outline: 3px solid var(--met); }
table.strip td.wrong img { outline: 3px solid var(--missed); }
table.strip td span { display: block; color: var(--faint); line-height: 1.35; }
table.strip td span.right { color: var(--met); font-weight: 700; }
table.strip td span.wrong { color: var(--missed); font-weight: 700; }
table.strip { width: 100%; min-width: 760px; table-layout: fixed; }
table.strip th:first-child { width: 3.4rem; }
table.strip img { width: 100%; border-radius: 6px; display: block; }
figure { margin: .4rem 0 0; }
figure svg { width: 100%; min-width: 640px; height: auto; display: block; }
dl { display: grid; grid-template-columns: 7rem 1fr; gap: .3rem 1rem; margin: 0; }
dd { margin: 0; overflow-wrap: anywhere; }
"""

DEMO = """<h1>An arm that remembers</h1>
<p class="lead">A simulated two-arm robot sees a cue, which then leaves every camera's view. Long after that it must
put a part to the left or to the right, as the cue said. The same policy is run with different memories, over ROS 2
topics.</p>
<section class="verdict {tone}"><b>{verdict}</b>
<ul class="criteria">{criteria}</ul></section>
<section><h2>What the cameras saw, and what each memory did</h2>
<p>Each row is the same scene with the other cue. At the branch both rows look alike: only a memory can tell them apart.
The round lamp says wait (red) or go (green); the other differences are what the arm did.</p>
{strips}</section>
<section><h2>Branch success</h2>
<div class="scroll"><table class="cells"><tr><th>task</th><th>memory</th><th>branch success<br>95 % interval</th>
<th>episodes</th><th>with the pause<br>95 % interval</th><th>episodes</th><th>progress</th><th>writes per s</th></tr>
{table}</table></div>
{success}</section>
<section><h2>Inside the memory</h2>
<p>Time runs from left to right. Dark cells: a large share of what was written went to that slot, or of what was read
came from it. Between writes the memory keeps still; it is read at every control tick.</p>
{timelines}</section>
<section><h2>Real time</h2>
{realtime}</section>
<section><h2>How this was measured</h2>
<dl>{facts}</dl></section>
"""

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style>
</head>
<body><main>
{body}
</main></body>
</html>
"""


def whole_page(title: str, body: str) -> str:
    """HTML of a page that needs no other file: `body` is HTML, `title` is text."""
    return _FRAME.format(title=escape(title), css=CSS, body=body)
