// Proofs of possession (DPoP, RFC 9449): a fresh signed JWT for each request.

const encoder = new TextEncoder();

/** Encodes bytes as base64url without padding. */
export function base64url(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

const publicKeys = new WeakMap<CryptoKey, JsonWebKey>();

async function publicJwk(key: CryptoKey): Promise<JsonWebKey> {
  let jwk = publicKeys.get(key);
  if (!jwk) {
    const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", key);
    jwk = { kty: kty!, crv: crv!, x: x!, y: y! };
    publicKeys.set(key, jwk);
  }
  return jwk;
}

const hashes = new Map<string, string>();

async function tokenHash(accessToken: string): Promise<string> {
  let hash = hashes.get(accessToken);
  if (hash === undefined) {
    hash = base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(accessToken))));
    hashes.clear();
    hashes.set(accessToken, hash);
  }
  return hash;
}

/** Hub's clock minus this browser's, in seconds; set from a `Date` header after a 401. */
let clockOffset = 0;

/** Takes the hub's clock from a response's `Date` header. Returns false without a usable one. */
export function correctClock(date: string | null): boolean {
  const time = date === null ? NaN : Date.parse(date);
  if (Number.isNaN(time)) return false;
  clockOffset = Math.round((time - Date.now()) / 1000);
  return true;
}

/** Signs a proof for one POST request. */
export async function createProof(keys: CryptoKeyPair, url: string, accessToken?: string): Promise<string> {
  const target = new URL(url, location.href);
  const header = { typ: "dpop+jwt", alg: "ES256", jwk: await publicJwk(keys.publicKey) };
  const claims: Record<string, string | number> = {
    jti: base64url(crypto.getRandomValues(new Uint8Array(16))),
    htm: "POST",
    htu: target.origin + target.pathname,
    iat: Math.floor(Date.now() / 1000) + clockOffset,
  };
  if (accessToken !== undefined) claims.ath = await tokenHash(accessToken);
  const part = (value: unknown) => base64url(encoder.encode(JSON.stringify(value)));
  const signed = `${part(header)}.${part(claims)}`;
  const signature = await crypto.subtle.sign(
    { name: "ECDSA", hash: "SHA-256" },
    keys.privateKey,
    encoder.encode(signed),
  );
  return `${signed}.${base64url(new Uint8Array(signature))}`;
}
