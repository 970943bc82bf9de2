"""What the HTML report does when scripts may run; without them it is the same table, unsorted."""

from __future__ import annotations

SCRIPT = """
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const table = byId("findings-table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  const search = byId("search");
  const severity = byId("severity");
  const shown = byId("shown");
  const collator = new Intl.Collator("en", { numeric: true });
  let texts;

  const key = (row, column) => (column === 0 ? row.dataset.rank : row.cells[column].textContent);

  function sort(column) {
    const header = headers[column];
    const direction = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    const sign = direction === "ascending" ? 1 : -1;
    headers.forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", direction);
    const sorted = rows
      .map((row) => [key(row, column), row])
      .sort((a, b) => sign * collator.compare(a[0], b[0]));
    const all = document.createDocumentFragment();
    sorted.forEach(([, row]) => all.append(row));
    body.append(all);
  }

  function filter() {
    texts ??= rows.map((row) => row.textContent.toLowerCase());
    const words = search.value.toLowerCase().split(/\\s+/);
    let count = 0;
    rows.forEach((row, index) => {
      const wanted =
        (severity.value === "" || severity.value === row.dataset.rank) &&
        words.every((word) => texts[index].includes(word));
      row.hidden = !wanted;
      count += wanted;
    });
    const number = (value) => value.toLocaleString("en");
    shown.textContent = `${number(count)} of ${number(rows.length)} shown`;
  }

  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(column));
    header.append(button);
  });
  headers[0].setAttribute("aria-sort", "ascending");

  let pending;
  search.addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(filter, 120);
  });
  severity.addEventListener("change", filter);
  document.querySelectorAll("a[data-find]").forEach((link) =>
    link.addEventListener("click", () => {
      search.value = link.dataset.find;
      severity.value = link.dataset.rank;
      filter();
    })
  );
  byId("controls").hidden = false;
})();
"""
