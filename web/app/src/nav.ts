import { signal } from "@preact/signals";
import { parse, withQuery } from "./lib/route.ts";

/** The address as signals: it alone determines what is shown. */
export const path = signal(location.pathname);
export const query = signal(new URLSearchParams(location.search));

export const route = () => parse(path.value);

function read(): void {
  path.value = location.pathname;
  query.value = new URLSearchParams(location.search);
}

addEventListener("popstate", read);

/** go shows another view. */
export function go(url: string, replace = false): void {
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  read();
}

/** setQuery changes parts of the query and keeps the rest. */
export function setQuery(changes: Record<string, string | undefined>, replace = true): void {
  const all: Record<string, string | undefined> = Object.fromEntries(query.value);
  go(withQuery(location.pathname, { ...all, ...changes }), replace);
}

// Internal links do not reload the page.
addEventListener("click", (e) => {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const link = (e.target as Element | null)?.closest?.("a");
  if (!link || link.origin !== location.origin || link.hasAttribute("download") || link.target) return;
  const to = parse(link.pathname);
  if (to.page === "missing") return;
  e.preventDefault();
  if (link.pathname + link.search !== location.pathname + location.search) go(link.pathname + link.search);
});
