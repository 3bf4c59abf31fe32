// Light, dark, or the system's theme.

const CHOICES = ["auto", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

/** Calls `then` after each change, once styles have the new colours. */
export const onTheme = (then) => listeners.push(then);

/** A custom property of the style sheet. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function themeButton(button) {
  let chosen = remembered();
  const apply = () => {
    document.documentElement.dataset.theme = chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
    button.textContent = `Theme: ${chosen}`;
    listeners.forEach((then) => then());
  };
  button.addEventListener("click", () => {
    chosen = CHOICES[(CHOICES.indexOf(chosen) + 1) % CHOICES.length];
    try {
      localStorage.setItem("theme", chosen);
    } catch {
      // Without storage, the browser uses the system's theme next time.
    }
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}

function remembered() {
  try {
    const theme = localStorage.getItem("theme");
    return CHOICES.includes(theme) ? theme : "auto";
  } catch {
    return "auto";
  }
}
