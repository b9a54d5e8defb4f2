// Token of the pairing link: taken from the fragment and removed from the address at once.

function take(): string {
  if (!/^\/ui\/pair\/?$/.test(location.pathname)) return "";
  const token = location.hash.slice(1);
  if (token !== "") history.replaceState(null, "", location.pathname);
  return token;
}

let token = take();

// A second link in the same tab changes only the fragment: the page begins again with it.
window.addEventListener("hashchange", () => {
  if (/^\/ui\/pair\/?$/.test(location.pathname) && location.hash.length > 1) location.reload();
});

/** Returns the token; a second call returns an empty text. */
export function takeToken(): string {
  const result = token === "" ? take() : token;
  token = "";
  return result;
}
