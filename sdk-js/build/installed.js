/**
 * Checks that the packages of the project in the current folder are installed. Runs before its
 * tests and its build.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";

if (!existsSync(join(process.cwd(), "node_modules", "a2a-hub-sdk"))) {
  console.error("error: the packages of this project are not installed yet\nhelp: npm install");
  process.exitCode = 1;
}
