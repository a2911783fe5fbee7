"use strict";
const numbers = new Intl.Collator("en", { numeric: true });

function compared(one, other) {
  // What was not measured comes last, whichever way the rest goes.
  if (one === "" || other === "") return null;
  const difference = Number(one) - Number(other);
  return Number.isNaN(difference) ? numbers.compare(one, other) : difference;
}

function sort(heading) {
  const table = heading.closest("table");
  const place = heading.cellIndex;
  const descending = heading.getAttribute("aria-sort") !== "descending";
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const valueOf = (row) => row.cells[place].dataset.value;
  const rows = [...table.tBodies[0].rows];
  rows.sort((one, other) => {
    const order = compared(valueOf(one), valueOf(other));
    if (order === null) return (valueOf(one) === "") - (valueOf(other) === "");
    return descending ? -order : order;
  });
  table.tBodies[0].append(...rows);
}

for (const heading of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => sort(heading));
}
