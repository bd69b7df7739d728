import { effect, signal } from "@preact/signals";

export type Theme = "system" | "dark" | "light";

const saved = localStorage.getItem("stet-theme");
export const theme = signal<Theme>(saved === "dark" || saved === "light" ? saved : "system");

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme.value);
  localStorage.setItem("stet-theme", theme.value);
});

export function cycleTheme(): void {
  theme.value = theme.value === "system" ? "dark" : theme.value === "dark" ? "light" : "system";
}
