// The latest steps as a table, for screen readers and for copying numbers.

import { firstOf } from "./history.js";
import { clock, interval, itemElement, make, number } from "./words.js";

const ROWS = 50;

const find = (id) => document.getElementById(id);

export class Table {
  constructor(history) {
    this.history = history;
    find("table-details").addEventListener("toggle", () => this.show());
  }

  // Only while it is open: nobody sees a closed table.
  show() {
    if (!find("table-details").open) return;
    const latest = this.history.records.slice(-ROWS).reverse();
    find("table-body").replaceChildren(...latest.map(rowOf));
  }
}

function rowOf(record) {
  const row = make("tr");
  const first = firstOf(record);
  const steps = first === record.step ? number(record.step) : `${number(first)} to ${number(record.step)}`;
  const head = make("th", "", steps);
  head.scope = "row";
  const ended = make("td", "", clock(Date.parse(record.end), { day: true }));
  ended.title = record.end;
  const results = make("td");
  for (const result of record.results ?? []) {
    const line = make("span", "result");
    line.append(itemElement(result.item), ` ${number(result.estimate)} (${interval(result)})`);
    results.append(line);
  }
  row.append(head, ended, make("td", "", number(record.hitters)), results);
  return row;
}
