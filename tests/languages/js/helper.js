/** Second file of the same agent: an error thrown here is reported with its position. */

export function boom(words) {
  const word = words.foo;

  // The line below is the reported one.
  throw new RangeError(`bad word ${word}`);
}
