// Address of another origin that hostile texts name. Nothing may ever be requested from it.

export const FAR = 'https://far.invalid';
