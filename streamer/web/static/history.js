// The steps that the page has loaded, and what they say about each item.

import { Series } from "./series.js";

const MOST = 10_000;

export class History {
  // For how many steps a report is valid: a reported item may not be checked again until then.
  refresh = 1;

  constructor() {
    this.clear();
  }

  clear() {
    this.records = [];
    this.series = new Map(); // item -> its series
  }

  get through() {
    return this.records.length ? this.records.at(-1).step : null;
  }

  get oldest() {
    return this.records.length ? firstOf(this.records[0]) : null;
  }

  // Adds steps that are newer than all loaded ones.
  append(records) {
    for (const record of records) {
      if (this.through !== null && record.step <= this.through) continue;
      this.records.push(record);
      this.#note(record);
    }
    if (this.records.length > MOST * 1.1) this.#replace(this.records.slice(-MOST));
  }

  // Adds steps that are older than all loaded ones.
  prepend(records) {
    const earlier = records.filter((record) => this.oldest === null || record.step < this.oldest);
    if (earlier.length) this.#replace(earlier.concat(this.records));
  }

  // When a step begins. All steps have the same length, so any loaded step is a reference.
  startOf(step, lengthMs) {
    const known = this.records.at(-1);
    return Date.parse(known.end) + (step - known.step - 1) * lengthMs;
  }

  // What is known about an item in a step. Null: it is not public.
  at(item, step) {
    return this.series.get(item)?.at(step, this.refresh) ?? null;
  }

  // The items that are gone since fewer than `steps` steps, the latest first.
  gone(steps) {
    const isRecent = ({ stretches }) => (stretches.at(-1).gone ?? -Infinity) > this.through - steps;
    const found = [...this.series.values()].filter(isRecent);
    return found.sort((one, other) => other.stretches.at(-1).gone - one.stretches.at(-1).gone);
  }

  // From step `first` on, the steps that have items, and how many.
  itemCounts(first) {
    const changes = new Int32Array(this.through - first + 2);
    for (const series of this.series.values()) {
      series.stretches.forEach((stretch, place) => {
        const end = Math.min(series.endOf(place, this.refresh), this.through + 1);
        const from = Math.max(first, stretch.first);
        if (end <= from) return;
        changes[from - first] += 1;
        changes[end - first] -= 1;
      });
    }
    const found = { steps: [], counts: [] };
    let count = 0;
    for (let place = 0; place <= this.through - first; place += 1) {
      count += changes[place];
      if (count) {
        found.steps.push(first + place);
        found.counts.push(count);
      }
    }
    return found;
  }

  #replace(records) {
    this.clear();
    this.records = records;
    for (const record of records) this.#note(record);
  }

  #note(record) {
    for (const result of record.results ?? []) {
      if (!this.series.has(result.item)) this.series.set(result.item, new Series(result.item));
      this.series.get(result.item).note(record.step, result);
    }
  }
}

export const firstOf = (record) => record.first ?? record.step;
