/* SPDX-License-Identifier: MIT */
/* Calls of the stand-in's control API. */

/** Call the control API; throws an Error with what the stand-in says. */
export async function call(method, path, body) {
  const answer = await fetch("/control/" + path, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error || answer.statusText);
  return value;
}

/** Upload a file; returns the attachment. */
export async function upload(file) {
  const query = new URLSearchParams({ filename: file.name });
  if (file.type) query.set("content_type", file.type);
  const answer = await fetch(`/control/attachment?${query}`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: file,
  });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error || answer.statusText);
  return value;
}

/** Send an interaction; returns its id. */
export async function send(order) {
  return (await call("POST", "interaction", order)).id;
}

/** Wait until an interaction is answered or has failed; returns it. */
export function answered(id, timeout = 10) {
  return call("GET", `interactions/${id}?wait=answered&timeout=${timeout}`);
}
