
'use strict';
(() => {
  const byId = (id) => document.getElementById(id);
  const box = byId('filters');
  const index = byId('index');
  if (!box || !index) return;
  const rows = [...index.tBodies[0].rows];
  const text = byId('f-text');
  const choices = [...box.querySelectorAll('select')];
  const attention = byId('f-attention');
  const count = byId('f-count');
  const none = byId('f-none');
  // What is about an issue outside the table: what needs attention, the bars, the last steps.
  const others = [...document.querySelectorAll('[data-i]')];
  const sectionOf = (row) => byId('i-' + row.dataset.k);
  const said = new Map();
  const words = (row) => {
    if (!said.has(row)) {
      const section = sectionOf(row);
      said.set(row, (row.textContent + ' ' + (section ? section.textContent : '')).toLowerCase());
    }
    return said.get(row);
  };
  const has = (row, { dataset: { in: place }, value }) =>
    place === 'p' ? row.cells[3].textContent === value : (row.dataset[place] || '').split(' ').includes(value);
  const apply = () => {
    const chosen = choices.filter((choice) => choice.value);
    const fitting = new Set();
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits =
        chosen.every((choice) => has(row, choice)) &&
        wanted.every((word) => words(row).includes(word));
      shown += fits;
      if (fits) fitting.add(row.dataset.k);
      if (row.hidden === fits) {
        row.hidden = !fits;
        const section = sectionOf(row);
        if (section) section.hidden = !fits;
      }
    }
    let needing = 0;
    for (const one of others) {
      const isNeed = 'n' in one.dataset;
      one.hidden = !fitting.has(one.dataset.i) || (isNeed && Boolean(attention.value) && !has(one, attention));
      needing += isNeed && !one.hidden;
    }
    const narrow = chosen.length + wanted.length > 0;
    document.documentElement.classList.toggle('filtered', narrow);
    if (none) none.hidden = needing > 0;
    const rest = document.querySelector('details.more');
    if (rest && narrow && rest.querySelector('[data-n]:not([hidden])')) rest.open = true;
    const all = rows.length;
    const number = (n) => n.toLocaleString('en-US');
    count.textContent =
      shown === all ? `${number(all)} ${all === 1 ? 'issue' : 'issues'}` : `${number(shown)} of ${number(all)} issues`;
    document.dispatchEvent(new Event('filtered'));
  };
  const clear = () => {
    for (const field of [text, ...choices]) field.value = '';
    apply();
  };
  // What a link leads to must be there, whatever the filters say.
  const reveal = (hash) => {
    let id = '';
    try { id = decodeURIComponent(hash.slice(1)); } catch { return; }
    const target = id && byId(id);
    const section = target && target.closest('section.issue');
    if (section && section.hidden) {
      clear();
      target.scrollIntoView();
    }
  };
  let waiting;
  text.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  });
  for (const choice of choices) choice.addEventListener('change', apply);
  byId('f-clear').addEventListener('click', () => {
    clear();
    text.focus();
  });
  addEventListener('hashchange', () => reveal(location.hash));
  // A link to where the address leads already changes no address.
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link) reveal(link.hash);
  });
  box.hidden = false;
  byId('to-search').hidden = false;
  // A browser that went back may have kept what was chosen.
  if ([text, ...choices].some((field) => field.value)) apply();
  document.addEventListener('refilter', apply);
})();
