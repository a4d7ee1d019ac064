// Whoever follows a link from another site arrives without the session's cookie, which browsers
// then hold back. What this page asks for itself is shown it.

const tried = 'baton: came back from the login';

if (!sessionStorage.getItem(tried)) {
  const answer = await fetch('session', { cache: 'no-store' });
  if (answer.ok) {
    sessionStorage.setItem(tried, 'once');
    location.replace(`../ops${location.search}`);
  }
}
