// The steps that the page knows, and each item's reports in them.

const MOST = 10_000;

// The first place in rising numbers that is not below a value.
export function placeOf(numbers, value) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.records = [];
    this.series = new Map(); // item: {item, steps, estimates, margins}
    this.busy = { steps: [], counts: [] }; // the steps with hitters, and how many
  }

  get through() {
    return this.records.length ? this.records.at(-1).step : null;
  }

  get oldest() {
    return this.records.length ? firstOf(this.records[0]) : null;
  }

  // Later steps than all that are known.
  append(records) {
    for (const record of records) {
      if (this.through !== null && record.step <= this.through) continue;
      this.records.push(record);
      this.#note(record);
    }
    if (this.records.length > MOST * 1.1) this.#replace(this.records.slice(-MOST));
  }

  // Earlier steps than all that are known.
  prepend(records) {
    const earlier = records.filter((record) => this.oldest === null || record.step < this.oldest);
    if (earlier.length) this.#replace(earlier.concat(this.records));
  }

  // When a step begins: steps are of one length, so any known one tells.
  startOf(step, lengthMs) {
    const known = this.records.at(-1);
    return Date.parse(known.end) + (step - known.step - 1) * lengthMs;
  }

  estimateAt(item, step) {
    const series = this.series.get(item);
    if (!series) return null;
    const place = placeOf(series.steps, step);
    if (series.steps[place] !== step) return null;
    return { estimate: series.estimates[place], margin: series.margins[place] };
  }

  #replace(records) {
    this.clear();
    this.records = records;
    for (const record of records) this.#note(record);
  }

  #note(record) {
    if (!record.results) return;
    this.busy.steps.push(record.step);
    this.busy.counts.push(record.results.length);
    for (const { item, estimate, margin } of record.results) {
      let series = this.series.get(item);
      if (!series) {
        series = { item, steps: [], estimates: [], margins: [] };
        this.series.set(item, series);
      }
      series.steps.push(record.step);
      series.estimates.push(estimate);
      series.margins.push(margin);
    }
  }
}

export const firstOf = (record) => record.first ?? record.step;
