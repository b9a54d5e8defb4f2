// Links of agents: which may be followed, and where they lead.

export interface SafeLink {
  href: string;
  /** Host, or address of a mail: shown if the text of the link does not say it. */
  target: string;
}

/** Returns the link if it may be followed: http, https and mailto, without a user name. */
export function safeLink(href: string): SafeLink | undefined {
  let url: URL;
  try {
    url = new URL(href.trim());
  } catch {
    return undefined;
  }
  if (url.protocol === "mailto:") return { href: url.href, target: decodePlain(url.pathname) };
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  // `https://bank.example@evil.example/` reads like another host.
  if (url.username !== "" || url.password !== "") return undefined;
  return { href: url.href, target: url.host };
}

function decodePlain(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** True if the text of a link names where it leads. */
export function saysTarget(text: string, link: SafeLink): boolean {
  const plain = text.trim();
  if (plain === link.href || plain === link.target) return true;
  const named = safeLink(plain) ?? safeLink(`https://${plain}`);
  return named !== undefined && /^[^\s]+$/.test(plain) && named.target === link.target;
}
