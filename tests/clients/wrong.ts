// Must not compile: each line that ends so is wrong in a way that only the schemas of the document tell.

import createClient from "openapi-fetch";

import type { components, paths } from "./tasklore.js";

type Schemas = components["schemas"];
type Parameters = Schemas["BudgetTrackerAgent.analyze_budget.Parameters"];

const api = createClient<paths>({ baseUrl: "http://127.0.0.1:8080" });
const path = "/v1/agents/BudgetTrackerAgent/tasks/analyze_budget";

// A field whose name is misspelt, one that is not there, and a value of another kind.
await api.POST(path, { body: { budget_limt: "50k", spent: 1 } }); // wrong
await api.POST(path, { body: { budget_limit: "50k" } }); // wrong
await api.POST(path, { body: { budget_limit: true, spent: 1 } }); // wrong
// A field that the task has not, of an object that is said to be its parameters.
export const parameters = { budget_limit: "50k", spent: 1, spend: 2 } satisfies Parameters; // wrong
// A field that its result has not.
const { data } = await api.POST(path, { body: { budget_limit: 2, spent: 1 } });
if (data && !("task_id" in data)) console.log(data.remainder); // wrong
// A status that no report has, and data of another event.
export const isOver = (report: Schemas["CompletionReport"]) => report.status === "finished"; // wrong
export const read = (one: Schemas["TaskStreamEvent"]) => one.event === "gap" && one.data.text; // wrong
