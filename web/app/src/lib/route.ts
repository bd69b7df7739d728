// Addresses of the page. Every view has one, so that it can be linked to.

export type Tab = "transcript" | "files" | "diff" | "subagents" | "state" | "raw";
export const tabs: readonly Tab[] = ["transcript", "files", "diff", "subagents", "state", "raw"];

export type Route =
  | { page: "home" }
  | { page: "conversation"; id: string; tab: Tab }
  | { page: "live"; id: string }
  | { page: "inspect"; id: string }
  | { page: "try"; id: string }
  | { page: "compare" }
  | { page: "search" }
  | { page: "storage" }
  | { page: "operations" }
  | { page: "missing" };

/** parse reads the path of an address. */
export function parse(path: string): Route {
  const parts = path.split("/").filter((p) => p !== "");
  const [first, second, third] = parts;
  const id = decode(second ?? "");
  switch (first) {
    case undefined:
      return { page: "home" };
    case "c":
      if (id && parts.length === 2) return { page: "conversation", id, tab: "transcript" };
      if (id && parts.length === 3 && (tabs as readonly string[]).includes(third)) return { page: "conversation", id, tab: third as Tab };
      break;
    case "live":
    case "inspect":
    case "try":
      if (id && parts.length === 2) return { page: first, id };
      break;
    case "compare":
    case "search":
    case "storage":
    case "operations":
      if (parts.length === 1) return { page: first };
      break;
  }
  return { page: "missing" };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

type Query = Record<string, string | number | undefined>;

/** withQuery adds the set parameters to a path. */
export function withQuery(path: string, query: Query = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v !== undefined && v !== "") q.set(k, String(v));
  const text = q.toString();
  return text ? `${path}?${text}` : path;
}

export const to = {
  conversation: (id: string, tab: Tab = "transcript", query: Query = {}) =>
    withQuery(`/c/${encodeURIComponent(id)}${tab === "transcript" ? "" : `/${tab}`}`, query),
  live: (id: string) => `/live/${encodeURIComponent(id)}`,
  inspect: (id: string, kind = "") => withQuery(`/inspect/${id}`, { kind }),
  try: (id: string) => `/try/${encodeURIComponent(id)}`,
  compare: (query: Query = {}) => withQuery("/compare", query),
  search: (q = "") => withQuery("/search", { q }),
};
