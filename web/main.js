// Connects the stream of views to the page for its sender.

import { cache } from "./cache.js";
import { controller } from "./controller.js";
import { say } from "./dom.js";
import { replica } from "./replica.js";
import { store } from "./store.js";
import { watch } from "./stream.js";
import { tasks } from "./tasks.js";
import { themeButton } from "./theme.js";
import { about } from "./units.js";

/** By program: `about(view)` describes the sender; `page(main)` returns a function (view, Unix time) that returns the title's rate. */
const PAGES = { tasks, store, cache, replica, controller };
const byId = (id) => document.getElementById(id);
const [main, state, pause, keys] = ["main", "state", "pause", "keys"].map(byId);
/** Views held while paused: one per second, enough for the histograms' last minute. */
const HELD_MAX = 60;
const held = [];
let show = null;
let program = null;
let isPaused = false;

/** While paused, the last views are held. On resume, charts and histograms receive them; older ones are lost. */
function onView(view) {
  held.push({ view, now: Date.now() / 1000 });
  if (held.length > HELD_MAX) held.shift();
  if (!isPaused) showHeld();
}

function showHeld() {
  for (const { view, now } of held.splice(0)) showView(view, now);
}

function showView(view, now) {
  if (view.program !== program) {
    program = view.program;
    main.replaceChildren();
    show = PAGES[program]?.page(main);
    say(byId("program"), program);
  }
  const what = PAGES[program]?.about(view) ?? "this page does not know it";
  say(byId("about"), `${what}, version ${view.status.version}, ${view.viewers} watching`);
  const rate = show?.(view, now);
  document.title = rate ? `${about(rate)}/s – Midflight` : "Midflight";
}

function onState(kind, text) {
  if (isPaused) return;
  state.dataset.state = kind;
  say(state, text);
}

function togglePause() {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  say(pause, isPaused ? "Resume" : "Pause");
  state.dataset.state = "wait";
  say(state, isPaused ? "paused" : "connecting");
  if (!isPaused) showHeld();
}

const PRESSED = { p: () => pause.click(), t: () => byId("theme").click(), "?": () => byId("help").click() };

document.addEventListener("keydown", (event) => {
  const isOurs = !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, select, textarea");
  if (!isOurs || keys.open) return;
  if (/^[1-9]$/.test(event.key)) {
    const heading = document.querySelectorAll("main section > h2")[Number(event.key) - 1];
    heading?.scrollIntoView();
    heading?.focus({ preventScroll: true });
  } else {
    PRESSED[event.key]?.();
  }
});

pause.addEventListener("click", togglePause);
byId("help").addEventListener("click", () => keys.showModal());
themeButton(byId("theme"));
watch(onView, onState);
