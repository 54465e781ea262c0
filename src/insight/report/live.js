
(() => {
  const root = document.documentElement;
  const line = document.getElementById('live');
  const fields = ['f-text', 'f-state', 'f-agent', 'f-protocol'].map((id) => document.getElementById(id));
  const KEY = 'handoff-view';
  const keep = () => {
    const open = [...document.querySelectorAll('details[open]')].map((one) => one.closest('[id]').id);
    const view = {
      x: scrollX, y: scrollY, open, focus: document.activeElement && document.activeElement.id,
      values: fields.map((field) => field && field.value),
    };
    try { sessionStorage.setItem(KEY, JSON.stringify(view)); } catch { /* Nothing is kept, then. */ }
  };
  const restore = () => {
    let view = null;
    try {
      view = JSON.parse(sessionStorage.getItem(KEY));
      sessionStorage.removeItem(KEY);
    } catch { return; }
    if (!view) return;
    view.values.forEach((value, i) => { if (fields[i] && value) fields[i].value = value; });
    document.dispatchEvent(new Event('refilter'));
    for (const id of view.open) {
      const place = document.getElementById(id);
      const details = place && place.querySelector('details');
      if (details) details.open = true;
    }
    const focus = view.focus && document.getElementById(view.focus);
    if (focus) focus.focus({ preventScroll: true });
    scrollTo(view.x, view.y);
  };
  const PAUSE = 2000;
  let misses = 0;
  const look = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch('/tip', { cache: 'no-store' });
        const { tip } = await answer.json();
        misses = 0;
        if (tip !== root.dataset.tip) {
          keep();
          history.scrollRestoration = 'manual';
          location.reload();
          return;
        }
        line.textContent = 'Live';
        line.className = '';
      } catch {
        misses += 1;
        if (misses > 1) {
          line.textContent = 'No longer live: the server does not answer';
          line.className = 'off';
        }
      }
    }
    setTimeout(look, PAUSE);
  };
  restore();
  history.scrollRestoration = 'auto';
  setTimeout(look, PAUSE);
})();
