// The connection: the recent past first, then every publication as it happens. It reconnects
// after any failure and then fetches what it missed.

const SILENCE_MS = 40_000; // the server sends something every 15 s
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const PAGE = 1000;

export class Live {
  #source = null;
  #timer = null;
  #waits = 0;
  #heardAt = 0;

  // `listener`: {state, guarantee, published, reset}, each called with the new value.
  constructor(history, recent, listener) {
    this.history = history;
    this.recent = recent;
    this.listener = listener;
    setInterval(() => this.#checkSilence(), 5_000);
    window.addEventListener("online", () => this.#retryNow());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#retryNow();
    });
  }

  async start() {
    this.#timer = null;
    try {
      if (this.history.through === null) {
        this.history.append((await load(`api/steps?limit=${this.recent}`)).steps);
      }
      this.#listen();
    } catch {
      this.#again();
    }
  }

  // Fetches earlier steps, back to this one, as far as the server has them.
  async fetchBack(step) {
    let since = step - 1;
    const earlier = [];
    const known = this.history.oldest;
    while (known !== null && since < known - 1) {
      const { steps } = await load(`api/steps?since=${since}&limit=${PAGE}`);
      if (!steps.length) break;
      earlier.push(...steps);
      since = steps.at(-1).step;
    }
    this.history.prepend(earlier);
  }

  #listen() {
    const since = this.history.through;
    const source = new EventSource(`api/events${since === null ? "" : `?since=${since}`}`);
    this.#source = source;
    const hear = (name, act) => source.addEventListener(name, (event) => {
      this.#heardAt = Date.now();
      this.#waits = 0;
      act(JSON.parse(event.data));
    });
    source.onopen = () => {
      this.#heardAt = Date.now();
      this.listener.state("live");
    };
    hear("guarantee", (promise) => this.listener.guarantee(promise));
    hear("published", ({ steps, hitters }) => {
      this.history.append(steps);
      if (hitters) this.listener.published(hitters);
    });
    hear("alive", () => {});
    hear("reset", () => {
      this.history.clear();
      this.listener.reset();
      this.#close();
      this.start();
    });
    // Browsers give up on some errors and use their own delays on others; we retry ourselves.
    source.onerror = () => this.#again();
  }

  #again() {
    this.#close();
    this.listener.state("reconnecting");
    if (this.#timer !== null) return;
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#waits);
    this.#waits += 1;
    // With jitter: a server that restarts has many pages waiting for it.
    this.#timer = setTimeout(() => this.start(), longest * (0.5 + Math.random() / 2));
  }

  #retryNow() {
    if (this.#timer === null) {
      this.#checkSilence();
      return;
    }
    clearTimeout(this.#timer);
    this.start();
  }

  #checkSilence() {
    if (this.#source && this.#heardAt && Date.now() - this.#heardAt > SILENCE_MS) this.#again();
  }

  #close() {
    this.#source?.close();
    this.#source = null;
  }
}

export async function load(path) {
  const response = await fetch(path, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}
