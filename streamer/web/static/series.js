// What the loaded steps say about one item: its values, and the stretches in which it is public.

// The first index in ascending numbers, or in values with ascending numbers, whose number is not
// below a limit.
export function placeOf(values, limit, number = (value) => value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (number(values[middle]) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Series {
  constructor(item) {
    this.item = item;
    // Its values, and their steps.
    this.steps = [];
    this.estimates = [];
    this.lows = [];
    this.highs = [];
    // {since, began, first, last, gone}: the first step of the stretch, and the state with which it
    // began; the first and last loaded steps in which the item is there; the step in which it is gone.
    this.stretches = [];
  }

  // Adds what a step says, in the order of the steps. Data of 0.1.0 has no `state` and no `since`: each
  // of its reports is a stretch.
  note(step, { state, since, estimate, low, high }) {
    let stretch = this.stretches.at(-1);
    if (!stretch || stretch.since !== since) {
      const began = since === undefined || since === step ? state : "ongoing";
      stretch = { since: since ?? step, began, first: step, last: step - 1, gone: null };
      this.stretches.push(stretch);
    }
    if (state === "gone") stretch.gone = step;
    else stretch.last = step;
    if (estimate === null) return;
    this.steps.push(step);
    this.estimates.push(estimate);
    this.lows.push(low);
    this.highs.push(high);
  }

  // The step after a stretch. A reported item may rest for `refresh` steps: it counts until then.
  endOf(place, refresh) {
    const { last, gone } = this.stretches[place];
    return gone ?? Math.min(last + refresh, this.stretches[place + 1]?.first ?? Infinity);
  }

  // What is known about the item in a step: its state, except in data of 0.1.0, and its last value.
  // Null: it is not public.
  at(step, refresh) {
    const place = placeOf(this.stretches, step + 1, (stretch) => stretch.first) - 1;
    if (place < 0) return null;
    const stretch = this.stretches[place];
    if (step === stretch.gone) return { state: "gone", value: null };
    if (step >= this.endOf(place, refresh)) return null;
    const state = stretch.began && (step === stretch.since ? stretch.began : "ongoing");
    return { state, value: this.#valueIn(stretch, step) };
  }

  // The last value of an item that is gone.
  get lastValue() {
    return this.#valueIn(this.stretches.at(-1), Infinity);
  }

  // From step `first` on, the times in which the item is there, from one value to the next; before
  // the first value that is loaded, the estimate is null.
  *bands(first, refresh) {
    let place = Math.max(0, placeOf(this.stretches, first + 1, (stretch) => stretch.first) - 1);
    for (; place < this.stretches.length; place += 1) {
      const end = this.endOf(place, refresh);
      let from = this.stretches[place].first;
      let value = Math.max(placeOf(this.steps, from), placeOf(this.steps, first + 1) - 1);
      const known = Math.min(this.steps[value] ?? end, end);
      if (known > from && known > first) yield { from, to: known, estimate: null };
      for (; this.steps[value] < end; value += 1) {
        from = this.steps[value];
        const to = Math.min(this.steps[value + 1] ?? end, end);
        if (to > first) yield { from, to, estimate: this.estimates[value] };
      }
    }
  }

  #valueIn(stretch, step) {
    const place = placeOf(this.steps, step + 1) - 1;
    if (!(this.steps[place] >= stretch.first)) return null;
    return {
      step: this.steps[place],
      estimate: this.estimates[place],
      low: this.lows[place],
      high: this.highs[place],
    };
  }
}
