/**
 * `node --import a2a-hub-sdk/typescript --test`: lets Node.js load TypeScript by esbuild, which keeps
 * lines.
 */

import { register } from "node:module";

register("./typescript-hooks.js", import.meta.url);
