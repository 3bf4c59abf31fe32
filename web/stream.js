// The stream of views (/events), which reconnects.

const SILENT_MS = 4000;
const AGAIN_MS = 5000;

/** Calls `onView` with each view, and `onState` with "live", "wait" or "off" and a sentence. */
export function watch(onView, onState) {
  let source = null;
  let heard = 0;

  function open() {
    source = new EventSource("events");
    source.onmessage = ({ data }) => {
      heard = performance.now();
      onState("live", "live");
      onView(JSON.parse(data));
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) refused();
      else onState("off", "no connection; trying again");
    };
  }

  // An EventSource does not report why it was refused.
  async function refused() {
    setTimeout(open, AGAIN_MS);
    const controller = new AbortController();
    try {
      const answer = await fetch("events", { signal: controller.signal });
      const why = answer.ok ? "" : (await answer.text()).slice(0, 200).trim();
      onState("off", why || "the stream has ended; trying again");
    } catch {
      onState("off", "no connection; trying again");
    } finally {
      controller.abort();
    }
  }

  setInterval(() => {
    const silent = performance.now() - heard;
    if (heard > 0 && source.readyState === EventSource.OPEN && silent > SILENT_MS) {
      onState("wait", `no news for ${Math.round(silent / 1000)} s`);
    }
  }, 1000);
  open();
}
