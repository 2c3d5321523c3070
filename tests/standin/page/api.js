/* SPDX-License-Identifier: MIT */
/* Calls of the stand-in's control API. */

/** Make a request; returns its JSON value, or throws an Error for people. */
async function request(path, options) {
  const answer = await fetch("/control/" + path, options).catch((error) => {
    throw error instanceof TypeError
      ? new Error("The service cannot be reached: nothing was sent.") : error;
  });
  const value = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    throw new Error(value.error || `The service answered ${answer.status}.`);
  }
  return value;
}

/** Call the control API; throws an Error with what the stand-in says. */
export function call(method, path, body) {
  return request(path, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}

/** Upload a file; returns the attachment. */
export function upload(file) {
  const query = new URLSearchParams({ filename: file.name });
  if (file.type) query.set("content_type", file.type);
  return request(`attachment?${query}`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: file,
  });
}

/** Send an interaction; returns its id. */
export async function send(order) {
  return (await call("POST", "interaction", order)).id;
}

/** Wait until an interaction is answered or has failed; returns it. */
export function answered(id, timeout = 10) {
  return call("GET", `interactions/${id}?wait=answered&timeout=${timeout}`);
}
