// How each item stands after the last step: what is there, what is new first, and what has just gone.

import { roughly } from "./words.js";

const NEW_STEPS = 5;
const GONE_STEPS = 5;
const GONE_SECONDS = 300;
const MOST_GONE = 5;

// The items that are there, as rows show them. `before`: the items in the order of the last time.
export function standing({ step, hitters }, history, seconds, before) {
  const found = stableOrder(hitters, before).map((hitter) => ({
    item: hitter.item,
    state: stateOf(hitter, history.series.get(hitter.item), step),
    trend: hitter.trend,
    time: `for ${roughly((step - hitter.since + 1) * seconds)}`,
    value: hitter.value,
    age: ageOf(hitter.value, step, seconds),
    threshold: hitter.threshold,
    left: 1,
  }));
  const isOngoing = ({ state }) => state === "ongoing";
  return [...found.filter((one) => !isOngoing(one)), ...found.filter(isOngoing)];
}

// For how many steps an item is shown after it has gone.
export const goneSteps = (seconds) => Math.max(GONE_STEPS, Math.ceil(GONE_SECONDS / seconds));

// Items that have gone not long ago, the latest first.
export function justGone(history, seconds) {
  const [steps, step] = [goneSteps(seconds), history.through];
  return history.gone(steps).slice(0, MOST_GONE).map((series) => {
    const { since, gone } = series.stretches.at(-1);
    const ago = gone === step ? "just now" : `${roughly((step - gone) * seconds)} ago`;
    return {
      item: series.item,
      state: "gone",
      trend: null,
      time: `${ago}, after ${roughly((gone - since) * seconds)}`,
      value: series.lastValue,
      age: ageOf(series.lastValue, step, seconds),
      threshold: null,
      left: 1 - (step - gone) / steps,
    };
  });
}

// An item counts as new, or back, for its first few steps: a single one is easily missed.
function stateOf(hitter, series, step) {
  if (step - hitter.since >= NEW_STEPS) return "ongoing";
  const stretch = series?.stretches.at(-1);
  return (stretch?.since === hitter.since ? stretch.began : hitter.state) ?? "new";
}

function ageOf(value, step, seconds) {
  return value && value.step < step ? `measured ${roughly((step - value.step) * seconds)} ago` : "";
}

// Sorted by last value, but an item moves up only if its whole interval is above the other estimate:
// a list that noise reorders in every step is unreadable.
function stableOrder(hitters, before) {
  const rank = new Map(before.map((item, place) => [item, place]));
  const estimate = ({ value }) => value?.estimate ?? 0;
  const known = hitters.filter((hitter) => rank.has(hitter.item));
  known.sort((one, other) => rank.get(one.item) - rank.get(other.item));
  for (let end = known.length - 1; end > 0; end -= 1) {
    for (let place = 0; place < end; place += 1) {
      const [upper, lower] = [known[place], known[place + 1]];
      if ((lower.value?.low ?? 0) > estimate(upper)) [known[place], known[place + 1]] = [lower, upper];
    }
  }
  for (const hitter of hitters) {
    if (rank.has(hitter.item)) continue;
    const place = known.findIndex((other) => estimate(other) < estimate(hitter));
    known.splice(place < 0 ? known.length : place, 0, hitter);
  }
  return known;
}
