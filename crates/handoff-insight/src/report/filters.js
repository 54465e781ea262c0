
'use strict';
(() => {
  const byId = (id) => document.getElementById(id);
  const box = byId('filters');
  const index = byId('index');
  if (!box || !index) return;
  const rows = [...index.tBodies[0].rows];
  const [text, state, agent, protocol] = ['f-text', 'f-state', 'f-agent', 'f-protocol'].map(byId);
  const count = byId('f-count');
  const sectionOf = (row) => byId('i-' + row.dataset.k);
  const said = new Map();
  const words = (row) => {
    if (!said.has(row)) {
      const section = sectionOf(row);
      said.set(row, (row.textContent + ' ' + (section ? section.textContent : '')).toLowerCase());
    }
    return said.get(row);
  };
  const apply = () => {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits =
        (!state.value || row.dataset.s.split(' ').includes(state.value)) &&
        (!agent.value || row.dataset.a.split(' ').includes(agent.value)) &&
        (!protocol.value || row.cells[3].textContent === protocol.value) &&
        wanted.every((word) => words(row).includes(word));
      shown += fits;
      if (row.hidden === fits) {
        row.hidden = !fits;
        const section = sectionOf(row);
        if (section) section.hidden = !fits;
      }
    }
    const all = rows.length;
    const number = (n) => n.toLocaleString('en-US');
    count.textContent =
      shown === all ? `${number(all)} ${all === 1 ? 'issue' : 'issues'}` : `${number(shown)} of ${number(all)} issues`;
    document.dispatchEvent(new Event('filtered'));
  };
  const clear = () => {
    text.value = state.value = agent.value = protocol.value = '';
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
  for (const choice of [state, agent, protocol]) choice.addEventListener('change', apply);
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
  if ([text, state, agent, protocol].some((field) => field.value)) apply();
  document.addEventListener('refilter', apply);
})();
