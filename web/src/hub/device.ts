// The paired device: its key pair and access token, kept in IndexedDB.

export interface Device {
  keys: CryptoKeyPair;
  accessToken: string;
  id: string;
  name: string;
}

const DATABASE = "a2a-hub";
const STORE = "device";
const CURRENT = "current";

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("IndexedDB is not available"));
  });
}

async function run<T>(mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await open();
  try {
    return await new Promise<T>((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = use(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = () => reject(transaction.error ?? new Error("IndexedDB failed"));
      transaction.onabort = () => reject(transaction.error ?? new Error("IndexedDB failed"));
    });
  } finally {
    database.close();
  }
}

/** Reads the stored device, if this browser is paired. */
export async function loadDevice(): Promise<Device | undefined> {
  return run("readonly", (store) => store.get(CURRENT) as IDBRequest<Device | undefined>);
}

/** Stores the device in place of an earlier one. */
export async function storeDevice(device: Device): Promise<void> {
  await run("readwrite", (store) => store.put(device, CURRENT));
}

/** Removes the stored device. */
export async function forgetDevice(): Promise<void> {
  await run("readwrite", (store) => store.delete(CURRENT));
}

/** Makes a key pair whose private key cannot leave the browser. */
export async function createKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
}
