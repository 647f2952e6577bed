// Before anything is drawn: the theme that was chosen; without one, the system's.
(function () {
  "use strict";
  let chosen = null;
  try { chosen = localStorage.getItem("headway.theme"); } catch { /* storage is forbidden */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
