
(() => {
  const root = document.documentElement;
  const line = document.getElementById('live');
  const fields = [...document.querySelectorAll('#filters input, #filters select')];
  const KEY = 'handoff-view';
  // Places that are on the next page too, the nearest first. A row of the table has no id, and is known by its key.
  const PLACE = '[id], tr[data-k]';
  const named = (place) => (place.id ? '#' + CSS.escape(place.id) : `tr[data-k="${CSS.escape(place.dataset.k)}"]`);
  const placesOf = (element) => {
    const found = [];
    for (let at = element && element.closest(PLACE); at; at = at.parentElement && at.parentElement.closest(PLACE)) found.push(at);
    return found;
  };
  // What begins far above tells little of where on it somebody is.
  const isCoarse = (place) => place.matches('main, main > section');
  // What has the focus: its nearest place, and which of those there.
  const kindOf = (element) => {
    const href = element.getAttribute('href');
    return element.localName + (href ? `[href="${CSS.escape(href)}"]` : '');
  };
  const focused = () => {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    const places = placesOf(element);
    if (places[0] === element) return { places: places.map(named), kind: '', index: 0 };
    const kind = kindOf(element);
    const index = [...(places[0] || document).querySelectorAll(kind)].indexOf(element);
    return { places: places.map(named), kind, index };
  };
  // What is at the top of the window: of what is below the bar there, the first that is small enough.
  const anchored = () => {
    if (scrollY === 0) return null;
    const nav = document.querySelector('nav');
    const top = Math.max(nav ? nav.getBoundingClientRect().bottom : 0, 0);
    const [middle, left] = [innerWidth / 2, Math.max((innerWidth - 1200) / 2, 0) + 30];
    for (let y = top + 3; y < innerHeight; y += 12) {
      for (const x of [left, middle]) {
        const places = placesOf(document.elementFromPoint(x, y)).filter((place) => place.closest('main'));
        if (places.length && !isCoarse(places[0])) {
          return places.map((place) => ({ place: named(place), top: place.getBoundingClientRect().top }));
        }
      }
    }
    return null;
  };
  const keep = () => {
    // The page that says that there is no ledger has no view of its own.
    if (!root.dataset.tip) return;
    const open = [...document.querySelectorAll('details[open]')].map((one) => one.closest('[id]').id);
    const view = { x: scrollX, y: scrollY, open, focus: focused(), anchors: anchored(), values: fields.map((field) => [field.id, field.value]) };
    try { sessionStorage.setItem(KEY, JSON.stringify(view)); } catch { /* Nothing is kept, then. */ }
  };
  const focusOn = ({ places, kind, index }) => {
    const found = places.map((place) => document.querySelector(place)).filter(Boolean);
    if (!found.length) return;
    const [nearest] = found;
    let element = nearest;
    if (kind && document.querySelector(places[0]) === nearest) {
      const same = nearest.querySelectorAll(kind);
      element = same[Math.min(index, same.length - 1)] || nearest;
    }
    // Where it has gone, whoever goes on by keyboard goes on from what it was in.
    if (element === nearest && element.tabIndex < 0) element.tabIndex = -1;
    element.focus({ preventScroll: true });
  };
  // What comes into sight is laid out only then, and moves what is below it.
  const settle = (view) => {
    const anchor = (view.anchors || [])
      .map(({ place, top }) => ({ place: document.querySelector(place), top }))
      .find(({ place }) => place && place.getClientRects().length);
    if (!anchor) {
      scrollTo(view.x, view.y);
      return;
    }
    let frames = 0;
    let taken = false;
    const kinds = ['wheel', 'touchstart', 'pointerdown', 'keydown'];
    const take = () => {
      taken = true;
      for (const kind of kinds) removeEventListener(kind, take);
    };
    for (const kind of kinds) addEventListener(kind, take, { passive: true });
    const move = () => {
      if (taken) return;
      const by = anchor.place.getBoundingClientRect().top - anchor.top;
      if (Math.abs(by) >= 1) scrollBy({ left: 0, top: by, behavior: 'instant' });
      frames += document.readyState === 'complete';
      if (frames < 20) requestAnimationFrame(move);
      else take();
    };
    move();
  };
  const restore = () => {
    if (!root.dataset.tip) return;
    let view = null;
    try {
      view = JSON.parse(sessionStorage.getItem(KEY));
      sessionStorage.removeItem(KEY);
    } catch { return; }
    if (!view) return;
    for (const [id, value] of view.values) {
      const field = value && document.getElementById(id);
      if (field) field.value = value;
      // What is no longer there can't be chosen.
      if (field && field.value !== value) field.value = '';
    }
    document.dispatchEvent(new Event('refilter'));
    for (const id of view.open) {
      const place = document.getElementById(id);
      const details = place && place.querySelector('details');
      if (details) details.open = true;
    }
    if (view.focus) focusOn(view.focus);
    settle(view);
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
        line.textContent = tip ? 'Live' : 'Not live: this page comes back with the ledger';
        line.className = tip ? '' : 'off';
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
