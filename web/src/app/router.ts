// Addresses of the page: paths below /ui/ by the History API, filters in the query string.

import { signal } from "@preact/signals";

export const BASE = "/ui/";

export interface Address {
  /** Path without the base, such as `tasks/01a2…`. */
  path: string;
  query: URLSearchParams;
}

function read(): Address {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : "";
  return { path: path.replace(/\/+$/, ""), query: new URLSearchParams(location.search) };
}

/** The address that is shown. */
export const address = signal<Address>(read());

window.addEventListener("popstate", () => {
  address.value = read();
});

/** Goes to a path below the base. */
export function go(path: string, options: { replace?: boolean } = {}): void {
  const url = BASE + path;
  if (options.replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  address.value = read();
  if (!options.replace) window.scrollTo(0, 0);
}

/** Changes members of the query string; an empty value removes one. */
export function setQuery(changes: Record<string, string>, replace = true): void {
  const query = new URLSearchParams(address.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const url = BASE + address.value.path + (text === "" ? "" : `?${text}`);
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  address.value = read();
}

/** Path of a task's screen. */
export function taskPath(id: string): string {
  return `tasks/${encodeURIComponent(id)}`;
}
