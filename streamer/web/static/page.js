// The live page: what is published goes into a history, and three views show it.

import { History } from "./history.js";
import { Live } from "./live.js";
import { Now } from "./now.js";
import { Table } from "./table.js";
import { Timeline } from "./timeline.js";
import { clock, duration, number, plural, small } from "./words.js";

const RECENT = 300;

const find = (id) => document.getElementById(id);

const history = new History();
const now = new Now(history);
const table = new Table(history);
const timeline = new Timeline(history, (step) => live.fetchBack(step));
let promise = null;
let current = { step: null, start: null, end: null, hitters: [] };
let connection = "waiting";
let publishedAt = null;

const live = new Live(history, RECENT, {
  state(state) {
    connection = state;
    showState();
  },
  guarantee(given) {
    promise = given;
    showPromise();
    showAll();
  },
  published(hitters) {
    current = hitters;
    publishedAt = Date.now();
    showAll();
    document.dispatchEvent(new CustomEvent("streamer:published"));
  },
  reset() {
    current = { step: null, start: null, end: null, hitters: [] };
    showAll();
  },
});

function showAll() {
  now.show(current, promise);
  timeline.show(promise, current);
  table.show();
  showStep();
  showState();
}

function showStep() {
  const words = find("now-step");
  if (current.step === null) {
    words.textContent = "";
    return;
  }
  const seconds = (promise?.step_seconds ?? 1) < 60;
  const span = `${clock(Date.parse(current.start), { seconds })} to ${clock(Date.parse(current.end), { seconds })}`;
  words.textContent = `${plural(current.hitters.length, "item")} \u00b7 last step ${span}`;
  words.title = `step ${current.step}, ${current.start} to ${current.end}`;
}

// Live, unless nothing has come for much longer than steps take.
function showState() {
  const length = 1000 * (promise?.step_seconds ?? 60);
  const quiet = publishedAt === null ? 0 : Date.now() - publishedAt;
  let [state, words] = ["waiting", "Connecting"];
  if (connection === "reconnecting") [state, words] = ["reconnecting", "Reconnecting"];
  else if (connection === "live" && current.step === null) words = "Waiting for the first step";
  else if (connection === "live" && quiet > 3 * length + 15_000) {
    words = `No step for ${duration(Math.round(quiet / 1000))}`;
  } else if (connection === "live") [state, words] = ["live", "Live"];
  const element = find("state");
  if (element.dataset.state !== state) element.dataset.state = state;
  if (find("state-words").textContent !== words) find("state-words").textContent = words;
}

function showPromise() {
  const seconds = promise.step_seconds;
  const told = {
    sentence: promise.sentence,
    epsilon: number(promise.epsilon),
    delta: small(promise.delta),
    contributions: number(promise.contributions),
    period: `${duration(seconds * promise.period_steps)}, ${plural(promise.period_steps, "step")}`,
    step: duration(seconds),
    threshold: plural(promise.threshold, "user"),
    margin: `\u00b1 ${plural(promise.margin, "user")}`,
  };
  for (const [name, words] of Object.entries(told)) find(`promise-${name}`).textContent = words;
  find("promise-terms").hidden = false;
  find("promise-fading").textContent =
    `A user who has counted for ${plural(promise.contributions, "report")} no longer counts until the next ` +
    "period, so an item that lasts can fade from view while it is still held.";
}

setInterval(showState, 5_000);
live.start();
