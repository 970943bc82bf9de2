"""How the HTML report looks: light and dark, on paper, and on a telephone."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f5f6f8; --card: #ffffff; --line: #d9dee5; --soft: #eef1f5;
  --text: #171b21; --muted: #57606c; --accent: #2563c9; --link: #1d55b3;
  --blocker: #b3261e; --blocker-soft: #fdecea;
  --warning: #8a5200; --warning-soft: #fff3dc;
  --info: #205493; --info-soft: #e8f0fb;
  --good: #1a6b38; --good-soft: #e6f5ea;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1318; --card: #181d24; --line: #303845; --soft: #222934;
    --text: #e7ebf0; --muted: #a2acb9; --accent: #6ba3f5; --link: #8bb8fa;
    --blocker: #ff9d94; --blocker-soft: #3d1b19;
    --warning: #f5c56b; --warning-soft: #37290f;
    --info: #9cc2f7; --info-soft: #1a2c45;
    --good: #86d69f; --good-soft: #14301e;
  }
}
* { box-sizing: border-box; }
html { font-size: 94%; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
}
main, footer { max-width: 1240px; margin: 0 auto; padding: 0 24px; }
main { padding-top: 32px; }
h1, h2, p, figure { margin: 0; }
h2 { font-size: 1.2rem; margin: 40px 0 12px; }
code, pre, .name { font-family: var(--mono); font-size: .87rem; overflow-wrap: anywhere; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }

.banner {
  display: flex; gap: 20px; align-items: center; padding: 24px 28px; border-radius: 10px;
  border: 1px solid currentColor; color: var(--tone); background: var(--tone-soft);
}
.banner.not-ready { --tone: var(--blocker); --tone-soft: var(--blocker-soft); }
.banner.ready, .banner.nothing-to-do { --tone: var(--good); --tone-soft: var(--good-soft); }
.banner svg { flex: none; }
.banner h1 { font-size: 1.87rem; line-height: 1.2; }
.banner p { color: var(--text); overflow-wrap: anywhere; }
.banner .versions { color: var(--muted); font-size: .93rem; }

.tiles {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 16px 0 0; padding: 0;
}
.tiles div, .card {
  background: var(--card); border: 1px solid var(--line); border-radius: 10px;
}
.tiles div { padding: 14px 18px; display: flex; flex-direction: column-reverse; }
.tiles dt { color: var(--muted); font-size: .93rem; }
.tiles dd { margin: 0; font-size: 1.87rem; line-height: 1.25; font-weight: 650; }
.tiles .blocker dd { color: var(--blocker); }
.tiles .warning dd { color: var(--warning); }
.tiles .info dd { color: var(--info); }
.tiles .none dd { color: var(--muted); }

.card { padding: 20px; }
.charts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(360px, 100%), 1fr));
  gap: 16px 48px; margin-bottom: 16px;
}
figcaption { font-weight: 600; margin-bottom: 4px; }
svg text { fill: var(--text); font-size: .87rem; }
svg .value { font-weight: 600; font-variant-numeric: tabular-nums; }
svg .track { fill: var(--soft); }
svg .bar { fill: var(--accent); }

table { width: 100%; border-collapse: collapse; }
.scroll { overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: 9px 12px 9px 0; }
th { font-size: .87rem; color: var(--muted); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 400; font-size: inherit; color: var(--text); }
th:last-child, td:last-child { padding-right: 0; }
tbody tr { border-top: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.badge {
  display: inline-block; padding: 1px 9px; border-radius: 99px; font-size: .87rem; font-weight: 600;
}
.badge.blocker { color: var(--blocker); background: var(--blocker-soft); }
.badge.warning { color: var(--warning); background: var(--warning-soft); }
.badge.info { color: var(--info); background: var(--info-soft); }
.muted { color: var(--muted); }
p.muted { margin-bottom: 12px; }
p.muted:last-child { margin: 12px 0 0; }

/* Rows are boxes of their own, so that the browser lays out only those that are in sight:
   a table of twenty thousand rows would take it many seconds. */
#findings-table, #findings-table thead, #findings-table tbody { display: block; }
#findings-table tr {
  display: grid; gap: 12px;
  grid-template-columns: 88px 56px 172px 120px minmax(140px, 1fr) minmax(240px, 2.6fr);
}
#findings-table, .card p { font-size: .93rem; }
#findings-table tr[hidden] { display: none; }
#findings-table tbody tr { content-visibility: auto; contain-intrinsic-size: auto 42px; }
#findings-table th, #findings-table td { padding-right: 0; overflow-wrap: anywhere; }
#findings-table thead {
  position: sticky; top: 0; z-index: 1; background: var(--card); box-shadow: 0 1px var(--line);
}
thead button {
  all: unset; cursor: pointer; font: inherit; color: inherit; padding-right: 18px;
  position: relative;
}
thead button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
thead button:hover, th[aria-sort] button { color: var(--text); }
th[aria-sort] button::after { position: absolute; right: 2px; content: "\\2191"; }
th[aria-sort="descending"] button::after { content: "\\2193"; }
pre {
  margin: 6px 0 0; padding: 8px 10px; border-radius: 6px; background: var(--soft);
  white-space: pre-wrap;
}
summary { cursor: pointer; color: var(--link); margin-top: 4px; }

.controls { display: flex; flex-wrap: wrap; gap: 12px 20px; align-items: end; margin-bottom: 12px; }
.controls[hidden] { display: none; }
.controls label { font-size: .87rem; color: var(--muted); display: grid; gap: 4px; }
.controls label:first-child { flex: 1 1 260px; }
.controls input, .controls select {
  font: inherit; color: var(--text); background: var(--page); padding: 7px 10px;
  border: 1px solid var(--muted); border-radius: 6px; width: 100%;
}
.controls output { color: var(--muted); padding-bottom: 8px; }

footer { color: var(--muted); font-size: .93rem; padding-top: 24px; padding-bottom: 48px; }

@media screen and (max-width: 800px) {
  main, footer { padding-left: 14px; padding-right: 14px; }
  .banner { padding: 18px; }
  .card { padding: 14px; }
  #findings-table thead { position: static; }
  #findings-table thead tr { grid-template-columns: repeat(3, auto); gap: 0 12px; }
  #findings-table tbody tr { grid-template-columns: auto 1fr; gap: 2px 12px; padding: 10px 0; }
  #findings-table td { padding: 0; }
  #findings-table td:nth-child(n + 3) { grid-column: 1 / -1; }
  #findings-table td:empty { display: none; }
}
@media print {
  :root {
    --page: #fff; --card: #fff; --line: #bbb; --soft: #f0f0f0; --text: #000; --muted: #444;
    --accent: #2563c9; --link: #000; --blocker: #b3261e; --blocker-soft: #fdecea;
    --warning: #8a5200; --warning-soft: #fff3dc; --info: #205493; --info-soft: #e8f0fb;
    --good: #1a6b38; --good-soft: #e6f5ea;
  }
  @page { margin: 14mm; }
  html { font-size: 11px; }
  body { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .tiles { grid-template-columns: repeat(5, 1fr); }
  .tiles dd { font-size: 1.5rem; }
  .charts { grid-template-columns: 1fr 1fr; gap: 24px; }
  main, footer { max-width: none; padding: 0; }
  .card { border: 0; padding: 0; }
  .controls, .controls[hidden] { display: none; }
  tr, figure, .banner, .tiles div { break-inside: avoid; }
  h2 { break-after: avoid; }
  #findings-table thead { position: static; box-shadow: none; }
  #findings-table tbody tr { content-visibility: visible; }
  #findings-table tr { grid-template-columns: 60px 40px 126px 76px 96px 1fr; gap: 6px; }
  summary { display: none; }
  details::details-content { content-visibility: visible; }
}
"""
