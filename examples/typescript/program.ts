// Asks in words, runs a typed task, handles a problem by its status, and follows a task.

import createClient from "openapi-fetch";

import { readEvents } from "./events.js";
import type { components, paths } from "./tasklore.js";

type TaskEvent = components["schemas"]["TaskStreamEvent"];

const key = process.env["TASKLORE_API_KEY"];
const api = createClient<paths>({
  baseUrl: process.env["TASKLORE_API_URL"] ?? "http://127.0.0.1:8080",
  headers: key === undefined ? {} : { Authorization: `Bearer ${key}` },
});

async function ask(): Promise<void> {
  const text = "limit 50k, spent 42000: how is my budget?";
  const { data, error } = await api.POST("/v1/requests", { body: { text } });
  if (error) throw new Error(error.detail);
  console.log("asked:", data.reply?.kind);
}

async function runTask(): Promise<void> {
  const { data, error } = await api.POST("/v1/agents/BudgetTrackerAgent/tasks/analyze_budget", {
    params: { query: { wait_seconds: 60 }, header: { "Idempotency-Key": "typed-1" } },
    body: { budget_limit: "50k", spent: 42_000 },
  });
  if (error) throw new Error(error.detail);
  if ("task_id" in data) console.log("still at it:", data.state);
  else console.log("remaining:", data.remaining);
}

async function runInVain(): Promise<void> {
  const { error } = await api.POST("/v1/agents/{agent_id}/tasks/{task}", {
    params: { path: { agent_id: "NobodyAgent", task: "nap" } },
    body: {},
  });
  switch (error?.status) {
    case 404:
      console.log("refused:", error.detail);
      break;
    case 502:
      console.log("failed:", "error" in error ? error.error?.type : error.detail);
      break;
    default:
      throw new Error(`not refused: ${error?.status}`);
  }
}

async function follow(): Promise<void> {
  const sent = await api.POST("/v1/tasks", {
    body: { task: "analyze_budget", parameters: { budget_limit: 90_000, spent: "50k" }, wait_seconds: 0 },
  });
  if (sent.error) throw new Error(sent.error.detail);
  const { data, error } = await api.GET("/v1/tasks/{task_id}/output", {
    params: { path: { task_id: sent.data.task_id } },
    parseAs: "stream",
  });
  if (error) throw new Error(error.detail);
  if (!data) throw new Error("there is no stream");
  for await (const one of readEvents<TaskEvent>(data)) {
    if (one.event === "text") console.log("text:", one.data.text);
    if (one.event === "question") console.log("question:", one.data.question);
    if (one.event === "done") console.log("done:", one.data.report?.status);
  }
}

await ask();
await runTask();
await runInVain();
await follow();
