/** Another file of the same agent: what is thrown here is told with its place. */

export function boom(words) {
  const word = words.foo;

  // The line below is the one that is told.
  throw new RangeError(`bad word ${word}`);
}
