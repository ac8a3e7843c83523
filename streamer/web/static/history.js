// The steps the page has loaded, and the reports of each item in them.

const MOST = 10_000;

// The first index in ascending numbers whose number is not below a value.
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
    this.series = new Map(); // item -> {item, steps, estimates, lows, highs}
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

  // The report of an item that is valid in a step: a reported item is not checked again for
  // `refresh` steps. Null: none.
  reportAt(item, step, refresh) {
    const series = this.series.get(item);
    if (!series) return null;
    const place = placeOf(series.steps, step + 1) - 1;
    if (place < 0 || step - series.steps[place] >= refresh) return null;
    return {
      ago: step - series.steps[place],
      estimate: series.estimates[place],
      low: series.lows[place],
      high: series.highs[place],
    };
  }

  // From step `first` on, the steps that have items, and how many: a reported item is not
  // checked again for `refresh` steps and counts until then.
  itemCounts(first, refresh) {
    const changes = new Int32Array(this.through - first + 2);
    for (const { steps } of this.series.values()) {
      for (let place = placeOf(steps, first - refresh + 1); place < steps.length; place += 1) {
        const end = Math.min(steps[place] + refresh, steps[place + 1] ?? Infinity, this.through + 1);
        if (end <= first) continue;
        changes[Math.max(0, steps[place] - first)] += 1;
        changes[end - first] -= 1;
      }
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
    if (!record.results) return;
    for (const { item, estimate, low, high } of record.results) {
      let series = this.series.get(item);
      if (!series) {
        series = { item, steps: [], estimates: [], lows: [], highs: [] };
        this.series.set(item, series);
      }
      series.steps.push(record.step);
      series.estimates.push(estimate);
      series.lows.push(low);
      series.highs.push(high);
    }
  }
}

export const firstOf = (record) => record.first ?? record.step;
