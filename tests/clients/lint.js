// Prints what redocly's recommended rules say of each document that is named, and fails where any is broken.

import { createConfig, lint } from "@redocly/openapi-core";

// Events as clients read them stand beside those that are sent, for clients alone.
const rules = { "no-unused-components": "off" };
const config = await createConfig({ extends: ["recommended"], rules });
for (const ref of process.argv.slice(2)) {
  for (const problem of await lint({ ref, config })) {
    const place = problem.location.map((one) => one.pointer).join(", ");
    console.log(`${ref}: ${problem.severity} ${problem.ruleId} at ${place}: ${problem.message}`);
    process.exitCode = 1;
  }
}
