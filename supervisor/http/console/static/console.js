// What pages do beside links and forms; every page reads, and every form posts, without it.
"use strict";

// One box that chooses all boxes of its form.
document.addEventListener("change", (event) => {
  const all = event.target;
  const name = all.dataset && all.dataset.all;
  if (!name || !all.form) return;
  for (const box of all.form.querySelectorAll(`input[type=checkbox][name="${name}"]`)) {
    box.checked = all.checked;
  }
});

function showScripted() {
  for (const box of document.querySelectorAll("input[data-all][hidden]")) {
    box.hidden = false;
  }
}
document.addEventListener("DOMContentLoaded", showScripted);
document.addEventListener("htmx:after:swap", showScripted);
