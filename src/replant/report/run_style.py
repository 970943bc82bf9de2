"""How the report of a run looks, beyond what all reports share."""

from __future__ import annotations

from replant.report.page_style import STYLE

RUN_STYLE = (
    STYLE
    + """
.banner.done { --tone: var(--good); --tone-soft: var(--good-soft); }
.banner.undone { --tone: var(--info); --tone-soft: var(--info-soft); }
.banner.stopped { --tone: var(--warning); --tone-soft: var(--warning-soft); }
.badge.passed { color: var(--good); background: var(--good-soft); }
.badge.not-yet { color: var(--warning); background: var(--warning-soft); }
.badge.wrong { color: var(--blocker); background: var(--blocker-soft); }
.badge { white-space: nowrap; }
.tiles div { justify-content: flex-end; }
.card > p.muted:only-child { margin: 0; }

.lanes {
  display: grid; grid-template-columns: minmax(90px, max-content) minmax(0, 1fr); column-gap: 14px;
}
.lanes svg { display: block; }
.lane-name {
  max-width: 260px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  font-size: .87rem; line-height: 24px;
}
.step-name { font-weight: 600; }
svg .grid { fill: var(--line); }
svg .pause { fill: var(--muted); opacity: .22; }
svg .turn { fill: var(--blocker); }
svg .step { fill: var(--good); }
svg .broken { opacity: .45; }
svg .out { fill: var(--accent); opacity: .45; }
svg .switch { fill: var(--accent); stroke: var(--card); stroke-width: 1.5; }
svg .switch.back { fill: var(--card); stroke: var(--accent); stroke-width: 2; }
svg .switched-area { fill: var(--good); opacity: .6; }
svg .out-area { fill: var(--accent); opacity: .6; }
svg.axis text { fill: var(--muted); font-size: .8rem; font-variant-numeric: tabular-nums; }
.legend {
  display: flex; flex-wrap: wrap; gap: 4px 22px; list-style: none; margin: 14px 0 0; padding: 0;
  font-size: .87rem; color: var(--muted);
}
.legend svg { margin-right: 7px; vertical-align: -2px; }
.facts { margin: 12px 0 0; }
.steps { margin: 0 0 14px; padding-left: 22px; font-size: .93rem; overflow-wrap: anywhere; }
.steps li + li { margin-top: 12px; }
.steps p { color: var(--muted); }
.wrap { overflow-wrap: anywhere; }
td.when { white-space: nowrap; font-variant-numeric: tabular-nums; }

@media screen and (max-width: 800px) {
  .lanes { grid-template-columns: minmax(0, 1fr); }
  .lane-name { max-width: none; line-height: 1.3; margin-top: 5px; }
  .lane-name.muted { display: none; }
  .outages tbody th, .outages td:not(.number) { overflow-wrap: anywhere; white-space: normal; }
  td.when { white-space: normal; }
}
@media print {
  .lanes svg, .lane-name { break-inside: avoid; }
}
"""
)
