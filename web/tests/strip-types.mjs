// Lets node run the sources: strips types and JSX with the compiler of Vite.
import { register } from "node:module";

register("./strip-types-hooks.mjs", import.meta.url);
