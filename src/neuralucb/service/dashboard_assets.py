"""Style and script of the dashboard, as constants: the page is one answer, and its policy allows these two alone.

Colours are those of Okabe and Ito (2008), which people with any kind of colour vision tell apart.
"""

import base64
import hashlib

__all__ = ["POLICY", "SCRIPT", "STYLE"]

STYLE = """
:root { color-scheme: light dark; --back: #f6f7f9; --panel: #fff; --ink: #1b1f24; --quiet: #5c6570; --edge: #d9dee4;
  --a: #0072b2; --b: #d55e00; --c: #009e73; --bad: #b3261e; --warning: #8a5a00; --note: #37618e; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --panel: #1d2228; --ink: #e7eaee; --quiet: #a0a9b4;
  --edge: #343b44; --a: #56b4e9; --b: #f0904a; --c: #35c79c; --bad: #ff8a80; --warning: #f0c060; --note: #9cc4ee; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main, #stale { max-width: 76rem; margin: 0 auto; padding: 1rem; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem 1rem; margin-bottom: .75rem; }
h1 { font-size: 1.3rem; margin: 0; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
p { margin: .4rem 0; }
.quiet { color: var(--quiet); font-size: .87rem; }
.state { font-weight: 600; }
.alarms { list-style: none; padding: 0; margin: 0 0 1rem; }
.alarms li { background: var(--panel); border: 1px solid var(--edge); border-left-width: 6px; border-radius: 6px;
  padding: .5rem .75rem; margin-bottom: .4rem; overflow-wrap: anywhere; }
.alarms .bad { border-left-color: var(--bad); } .alarms .warning { border-left-color: var(--warning); }
.alarms .note { border-left-color: var(--note); } .alarms b { margin-right: .4rem; }
.bad b { color: var(--bad); } .warning b { color: var(--warning); } .note b { color: var(--note); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin: 0 0 .75rem; }
.tiles > div, section { background: var(--panel); border: 1px solid var(--edge); border-radius: 8px;
  padding: .75rem .9rem; min-width: 0; }
.tiles dt { color: var(--quiet); font-size: .87rem; }
.tiles dd { margin: 0; font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.tiles dd + dd { font-size: .87rem; font-weight: 400; color: var(--quiet); }
.panels { display: flex; gap: .75rem; align-items: flex-start; }
.column { flex: 1 1 0; min-width: 0; }
section { margin-bottom: .75rem; overflow-x: auto; }
@media (max-width: 52rem) { main { padding: .6rem; } .panels { flex-direction: column; align-items: stretch; gap: 0; }
  .column { display: contents; } .later { order: 1; } .last { order: 2; } }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 400; color: var(--quiet); font-size: .87rem; }
th, td { padding: .25rem .5rem .25rem 0; border-bottom: 1px solid var(--edge); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.name { overflow-wrap: anywhere; min-width: 5.5rem; }
td.share { width: 24%; }
.stacked td .quiet { display: block; }
tr:has(+ .words) td { border-bottom: 0; }
@media (max-width: 30rem) { .wide { display: none; } td .quiet { display: block; } svg.chart text { font-size: 14px; } }
svg.chart { display: block; width: 100%; height: auto; }
svg.bar { display: block; width: 100%; height: .5rem; margin-top: .45rem; }
svg.key { width: 1.6rem; height: .55rem; margin-right: .35rem; }
svg text { font: 11px system-ui, sans-serif; fill: var(--quiet); }
.grid { stroke: var(--edge); stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.line.b { stroke-dasharray: 6 3; } .line.c { stroke-dasharray: 2 3; }
.line.a, .span.a { stroke: var(--a); } .line.b, .span.b { stroke: var(--b); } .line.c, .span.c { stroke: var(--c); }
.band { opacity: .22; } .band.a, .dot.a { fill: var(--a); } .band.b, .dot.b { fill: var(--b); }
.band.c, .dot.c { fill: var(--c); }
.span { stroke-width: 3; }
rect.rest { fill: var(--edge); } rect.part { fill: var(--a); }
.legend { display: flex; flex-wrap: wrap; gap: 0 1rem; font-size: .87rem; color: var(--quiet); }
#stale { color: var(--bad); font-weight: 600; padding-bottom: 0; }
form { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: .75rem; }
input, button { font: inherit; padding: .4rem .6rem; border: 1px solid var(--quiet); border-radius: 6px;
  background: var(--panel); color: var(--ink); min-width: 0; }
input { flex: 1 1 12rem; }
"""

SCRIPT = """
(() => {
  const key = 'neuralucb-token', seconds = 5;
  const load = async () => {
    if (document.hidden || document.activeElement instanceof HTMLInputElement) return;
    const token = sessionStorage.getItem(key);
    const stale = document.getElementById('stale');
    try {
      const headers = token ? {Authorization: 'Bearer ' + token} : {};
      const answer = await fetch(location.pathname, {cache: 'no-store', headers});
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      document.querySelector('main').replaceWith(page.querySelector('main'));
      document.title = page.title;
      stale.hidden = true;
    } catch (problem) {
      stale.hidden = false;
    }
  };
  document.addEventListener('submit', event => {
    event.preventDefault();
    sessionStorage.setItem(key, event.target.querySelector('input').value.trim());
    document.activeElement.blur();
    load();
  });
  document.addEventListener('visibilitychange', load);
  setInterval(load, 1000 * seconds);
  if (sessionStorage.getItem(key)) load();
})();
"""


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


POLICY = (
    f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: nothing from elsewhere, and nothing that a request has brought in."""
