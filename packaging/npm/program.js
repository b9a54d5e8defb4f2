// Finds the program in the package of this system.
"use strict";

const { version, optionalDependencies } = require("./package.json");

/**
 * Path of the program for this system.
 *
 * @returns {string}
 * @throws {Error} if there is none; the message says how to get one
 */
exports.program = () => {
  const system = `${process.platform}-${process.arch}`;
  const name = `@a2a-hub/${system}`;
  if (!(name in optionalDependencies)) {
    const all = Object.keys(optionalDependencies).map((name) => name.replace("@a2a-hub/", ""));
    throw new Error(
      `a2a-hub has no program for ${system}, but for ${all.join(" and ")}. ` +
        "On macOS use a Linux virtual machine, on Windows use WSL2.",
    );
  }
  let found;
  try {
    found = require(`${name}/package.json`);
  } catch {
    throw new Error(
      `the package ${name}, which contains the program for this system, is not installed. ` +
        `npm leaves it out with --omit=optional; install it with: npm install ${name}@${version}`,
    );
  }
  const path = require.resolve(`${name}/bin/a2a-hub`);
  const needed = found.a2aHub?.glibc;
  if (needed !== undefined) refuseOlderLibrary(needed);
  return path;
};

/** Throws an error if the C library of this system cannot run a program that needs `needed`. */
function refuseOlderLibrary(needed) {
  const report = process.report;
  report.excludeNetwork = true;
  const there = report.getReport().header.glibcVersionRuntime;
  if (there === undefined) {
    throw new Error(`a2a-hub needs the GNU C library ${needed} or later; this system uses another C library.`);
  }
  const [major, minor] = there.split(".").map(Number);
  const [neededMajor, neededMinor] = needed.split(".").map(Number);
  if (major < neededMajor || (major === neededMajor && minor < neededMinor)) {
    throw new Error(`a2a-hub needs the GNU C library ${needed} or later; this system has ${there}.`);
  }
}
