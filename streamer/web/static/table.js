// The latest steps as a table, for screen readers and for copying numbers.

import { firstOf } from "./history.js";
import { clock, interval, itemElement, make, number } from "./words.js";

const STEPS = 50;
const DAY = { day: true };

const find = (id) => document.getElementById(id);

export class Table {
  constructor(history) {
    this.history = history;
    this.lengthMs = 1000;
    find("table-details").addEventListener("toggle", () => this.show());
  }

  // Only while it is open: nobody sees a closed table.
  show() {
    if (!find("table-details").open) return;
    const latest = this.history.records.slice(-STEPS).reverse();
    find("table-body").replaceChildren(...latest.flatMap((record) => this.#rowsOf(record)));
  }

  // A row for each item of a step; the first one names the step.
  #rowsOf(record) {
    const rows = (record.results ?? []).map((result) => this.#rowOf(result));
    if (!rows.length) rows.push(noItems());
    const first = firstOf(record);
    const steps = first === record.step ? number(record.step) : `${number(first)} to ${number(record.step)}`;
    const head = make("th", "", steps);
    head.scope = "rowgroup";
    const ended = make("td", "", clock(Date.parse(record.end), DAY));
    ended.title = record.end;
    for (const cell of [head, ended]) cell.rowSpan = rows.length;
    rows[0].prepend(head, ended);
    return rows;
  }

  #rowOf(result) {
    const row = make("tr");
    const item = make("td");
    item.append(itemElement(result.item));
    row.append(item, make("td", "", result.state ?? ""), this.#time(result.since), make("td", "", this.#value(result)));
    return row;
  }

  // Data of 0.1.0 does not say since when an item is there.
  #time(step) {
    if (step === undefined) return make("td");
    const cell = make("td", "", clock(this.history.startOf(step, this.lengthMs), DAY));
    cell.title = `step ${number(step)}`;
    return cell;
  }

  #value(result) {
    if (result.estimate !== null) return `${number(result.estimate)} (${interval(result)})`;
    if (result.state === "gone" || result.valued_at === undefined) return "\u2013";
    return `no new value since ${clock(this.history.startOf(result.valued_at, this.lengthMs), DAY)}`;
  }
}

function noItems() {
  const row = make("tr");
  const cell = make("td", "", "no items");
  cell.colSpan = 4;
  row.append(cell);
  return row;
}
