import { useKeys } from "./keys.ts";

/** moveFocus moves the focus to the next or previous element that matches a selector. */
export function moveFocus(selector: string, step: 1 | -1): void {
  const all = [...document.querySelectorAll<HTMLElement>(selector)];
  if (all.length === 0) return;
  const at = all.findIndex((el) => el === document.activeElement || el.contains(document.activeElement));
  const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(at + step, all.length - 1));
  all[next].focus();
}

/** useListKeys makes j and k move through the elements that match a selector. */
export function useListKeys(name: string, selector: string): void {
  useKeys(name, [
    { keys: "j", about: "Next", run: () => moveFocus(selector, 1) },
    { keys: "k", about: "Previous", run: () => moveFocus(selector, -1) },
  ]);
}
