//! Conversations that were begun from a model spec.

use baton::switch::record::{Status, Switch};
use mongodb::bson::{Document, doc};
use tempfile::TempDir;

use crate::harness::{
    Agent, Baton, LibreChat, Mongod, TestDb, Turn, User, eventually, holds, parts,
};

struct Scene {
    db: TestDb,
    a: Agent,
    b: Agent,
    user: User,
    librechat: LibreChat,
    baton: Baton,
    /// Holds the `librechat.yaml`.
    _folder: TempDir,
}

impl Scene {
    /// With the model specs of a `librechat.yaml`: A's always, B's where it is asked for.
    async fn set(specs_of_b: bool, enforce: bool) -> Self {
        let db = Mongod::shared().await.db().await;
        let librechat = LibreChat::on(&db);
        librechat.seed_roles().await;
        let user = librechat.user().await;
        let a = librechat.agent(&user, "A").await;
        let b = librechat.agent(&user, "B").await;
        let spec = |name: &str, agent: &Agent| {
            format!(
                "    - name: {name}\n      label: {name}\n      iconURL: /{name}.png\n      \
                 preset: {{ endpoint: agents, agent_id: {} }}\n",
                agent.id
            )
        };
        let mut yaml = format!(
            "version: 1.3.0\nmodelSpecs:\n  enforce: {enforce}\n  list:\n{}",
            spec("of-a", &a)
        );
        if specs_of_b {
            yaml += &spec("of-b", &b);
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("librechat.yaml");
        std::fs::write(&file, yaml).unwrap();
        let baton = Baton::start_with(
            &db,
            &[
                ("BATON__SWITCH__SERVERS", "switcher"),
                ("BATON__LIBRECHAT__CONFIG", file.to_str().unwrap()),
            ],
        )
        .await;
        Self {
            db,
            a,
            b,
            user,
            librechat,
            baton,
            _folder: folder,
        }
    }

    /// A turn of A's in a conversation that was begun from A's spec.
    async fn second_turn(&self) -> Turn {
        let mut first = Turn::first(&self.librechat, &self.user, &self.a);
        first.preset = doc! { "spec": "of-a", "iconURL": "/of-a.png" };
        first.run_plain().await;
        let turn = first.next(&self.a);
        turn.save_user_message().await;
        turn.start().await;
        turn
    }

    async fn is(&self, turn: &Turn, agent: &Agent, spec: Option<&str>) {
        let wanted = |document: &Document| {
            let icon = spec.map(|spec| format!("/{spec}.png"));
            document.get_str("agent_id").ok() == Some(&agent.id)
                && document.get_str("spec").ok() == spec
                && document.get_str("iconURL").ok() == icon.as_deref()
                && (spec.is_some() || !document.contains_key("spec"))
        };
        holds("the conversation has the agent and its spec", async || {
            turn.document(&self.db).await.as_ref().is_some_and(wanted)
        })
        .await;
    }

    async fn closed(&self, turn: &Turn) -> Switch {
        eventually("the switch is closed", async || {
            let record = self
                .db
                .state_database()
                .collection::<Switch>("switches")
                .find_one(doc! { "message_id": &turn.response })
                .await
                .unwrap()?;
            (record.status != Status::Open).then_some(record)
        })
        .await
    }

    /// START comes late, then END: both write the old agent and the old spec back.
    async fn survives(&self, spec: Option<&str>) {
        let turn = self.second_turn().await;
        turn.tool_writes(&self.b).await;
        let call = [parts::switch(&self.b.id, &turn.conversation)];
        turn.save_response(&call).await;
        self.is(&turn, &self.b, spec).await;
        turn.start().await;
        self.is(&turn, &self.b, spec).await;
        turn.end().await;
        self.is(&turn, &self.b, spec).await;
        turn.touch_user_message().await;
        assert_eq!(self.closed(&turn).await.status, Status::Settled);
        self.is(&turn, &self.b, spec).await;
    }
}

#[tokio::test]
async fn a_switch_brings_the_spec_of_its_target() {
    Scene::set(true, false).await.survives(Some("of-b")).await;
}

#[tokio::test]
async fn a_spec_that_the_target_has_not_is_cleared() {
    Scene::set(false, false).await.survives(None).await;
}

#[tokio::test]
async fn enforced_specs_are_set_too() {
    Scene::set(true, true).await.survives(Some("of-b")).await;
}

#[tokio::test]
async fn an_enforced_spec_that_the_target_has_not_refuses_the_switch() {
    let s = Scene::set(false, true).await;
    let turn = s.second_turn().await;
    turn.tool_writes(&s.b).await;
    let call = [parts::switch(&s.b.id, &turn.conversation)];
    turn.save_unfinished_response(&call).await;
    let record = s.closed(&turn).await;
    assert_eq!(record.status, Status::Rejected);
    assert!(record.detail.unwrap().contains("enforce"));
    s.is(&turn, &s.a, Some("of-a")).await;
}

#[tokio::test]
async fn a_spec_is_cleared_in_a_conversation_that_a_restart_finds() {
    let mut s = Scene::set(false, false).await;
    let turn = s.second_turn().await;
    let call = [parts::switch(&s.b.id, &turn.conversation)];
    turn.save_response(&call).await;
    s.is(&turn, &s.b, None).await;
    s.baton.kill();
    turn.end().await;
    turn.touch_user_message().await;
    s.is(&turn, &s.a, Some("of-a")).await;
    s.baton.restart().await;
    assert_eq!(s.closed(&turn).await.status, Status::Settled);
    s.is(&turn, &s.b, None).await;
}
