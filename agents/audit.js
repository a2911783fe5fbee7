"use strict";
const key = "lamina-audit-" + document.body.dataset.digest;
const cases = [...document.querySelectorAll("article")];
const rows = [...document.querySelectorAll("tr[data-operator]")];
const verdictOf = (card) => card.querySelector("input[type=radio]:checked")?.value ?? null;
const percent = (part, whole) => (whole ? (100 * part / whole).toFixed(1) + " %" : "–");

function tally() {
  // Each operator got an equal share of the sample; the total weighs it by how often it was accepted.
  let weight = 0, valid = 0, harmful = 0, judged = 0;
  for (const row of rows) {
    const verdicts = cases.filter((card) => card.dataset.operator === row.dataset.operator).map(verdictOf).filter(Boolean);
    const good = verdicts.filter((each) => each === "valid").length;
    const bad = verdicts.filter((each) => each === "harmful").length;
    row.querySelector(".judged").textContent = verdicts.length;
    row.querySelector(".valid").textContent = percent(good, verdicts.length);
    row.querySelector(".harmful").textContent = percent(bad, verdicts.length);
    judged += verdicts.length;
    if (verdicts.length) {
      const accepted = Number(row.dataset.accepted);
      weight += accepted;
      valid += accepted * good / verdicts.length;
      harmful += accepted * bad / verdicts.length;
    }
  }
  const total = document.getElementById("total");
  total.querySelector(".judged").textContent = judged;
  total.querySelector(".valid").textContent = percent(valid, weight);
  total.querySelector(".harmful").textContent = percent(harmful, weight);
}

function judgements() {
  return cases.map((card) => ({
    edit: card.dataset.edit,
    operator: card.dataset.operator,
    verdict: verdictOf(card),
    note: card.querySelector("input[type=text]").value,
  }));
}

function changed() {
  for (const card of cases) card.classList.toggle("judged", verdictOf(card) !== null);
  tally();
  try { localStorage.setItem(key, JSON.stringify(judgements())); } catch { /* a browser may keep nothing */ }
}

function restore() {
  let kept = [];
  try { kept = JSON.parse(localStorage.getItem(key)) ?? []; } catch { /* nothing was kept */ }
  for (const each of kept) {
    const card = cases.find((one) => one.dataset.edit === each.edit);
    if (!card) continue;
    for (const radio of card.querySelectorAll("input[type=radio]")) radio.checked = radio.value === each.verdict;
    card.querySelector("input[type=text]").value = each.note ?? "";
  }
}

function download() {
  const accepted = Object.fromEntries(rows.map((row) => [row.dataset.operator, Number(row.dataset.accepted)]));
  const text = JSON.stringify({ seed: Number(document.body.dataset.seed), accepted, judgements: judgements() }, null, 2);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "judgements.json";
  link.click();
  URL.revokeObjectURL(link.href);
}

document.addEventListener("change", changed);
document.getElementById("download").addEventListener("click", download);
restore();
changed();
