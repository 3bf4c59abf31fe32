// Connects the stream of views to the page of the switch's program.

import { say } from "./dom.js";
import { readsPage, replicasPage } from "./programs.js";
import { watch } from "./stream.js";
import { tasksPage } from "./tasks.js";
import { themeButton } from "./theme.js";
import { about, millis } from "./units.js";

const PAGES = { tasks: tasksPage, reads: readsPage, replicas: replicasPage };
const RATES = { tasks: "tasks.completed" };
const byId = (id) => document.getElementById(id);
const [main, state, pause, keys] = ["main", "state", "pause", "keys"].map(byId);
let show = null;
let program = null;
let isPaused = false;

function onView(view) {
  if (isPaused) return;
  if (view.program !== program) {
    program = view.program;
    main.replaceChildren();
    show = PAGES[program]?.(main);
    say(byId("program"), program);
  }
  const { status } = view;
  say(byId("about"), `${status.listen}, ${status.engine.kind} engine, up ${millis(status.uptime_ms)}, version ${status.version}, ${view.viewers} watching`);
  show?.(view);
  const rate = view.rates[RATES[program]];
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
  say(pause, isPaused ? "Go on" : "Pause");
  state.dataset.state = "wait";
  say(state, isPaused ? "paused" : "connecting");
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
