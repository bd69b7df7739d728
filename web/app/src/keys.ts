import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

// The keyboard. Views register their keys while they are shown; the "?" sheet lists
// all registered keys.

export interface Key {
  /** Such as "j" or "g h". */
  keys: string;
  about: string;
  run: () => void;
}

interface Group {
  readonly name: string;
  readonly keys: Key[];
}

/** The group of keys that work on every page. */
export const everywhere = "Everywhere";

export const groups = signal<Group[]>([]);

/** useKeys registers keys while a component is shown. Their actions may change with
 * every render; the keys are registered once. */
export function useKeys(name: string, keys: Key[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  // Before the view is visible: a user who sees it may press its keys.
  useLayoutEffect(() => {
    const group: Group = {
      name,
      get keys() {
        return latest.current;
      },
    };
    // Global keys come first: keys of a view take precedence.
    groups.value = name === everywhere ? [group, ...groups.value] : [...groups.value, group];
    return () => {
      groups.value = groups.value.filter((g) => g !== group);
    };
  }, []);
}

let prefix = "";
let prefixTimer = 0;

/** typing reports whether keys belong to a field. */
function typing(target: EventTarget | null): boolean {
  const el = target as HTMLElement | null;
  return !!el && (el.tagName === "INPUT" || el.tagName === "TEXTAREA" || el.tagName === "SELECT" || el.isContentEditable);
}

addEventListener("keydown", (e) => {
  if (e.metaKey || e.ctrlKey || e.altKey || e.isComposing) return;
  const target = e.target as HTMLElement | null;
  if (typing(target)) {
    const field = target as HTMLInputElement;
    const text = field.tagName !== "SELECT" && !["radio", "checkbox"].includes(field.type);
    if (e.key === "Escape") field.blur();
    if (text || e.key !== "?") return;
  }
  // A dialog swallows the keys that it does not use.
  const modal = document.querySelector("dialog[open]");
  const wanted = prefix ? `${prefix} ${e.key}` : e.key;
  prefix = "";
  clearTimeout(prefixTimer);
  const all = groups.value.flatMap((g) => (modal && g.name !== "Dialog" ? [] : g.keys));
  // The last registration takes precedence.
  const found = all.findLast((k) => k.keys.split(" or ").includes(wanted));
  if (found) {
    e.preventDefault();
    found.run();
    return;
  }
  if (all.some((k) => k.keys.startsWith(`${e.key} `))) {
    prefix = e.key;
    prefixTimer = window.setTimeout(() => (prefix = ""), 1500);
  }
});
