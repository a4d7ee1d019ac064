//! A choice while LibreChat is at work on a turn: it outlasts that turn, and no later one.

use mongodb::bson::doc;

use super::{Scene, text};
use crate::harness::{Agent, Baton, Turn, eventually, parts};

fn call(agent: &Agent, turn: &Turn) -> [mongodb::bson::Bson; 1] {
    [parts::switch(&agent.id, &turn.conversation)]
}

#[tokio::test]
async fn the_end_of_the_turn_in_flight_is_undone() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    s.chosen(&turn, &s.b).await;
    assert_eq!(turn.agent_now(&s.db).await.as_deref(), Some(&*s.b.id));
    let record = s.records(&turn).await.remove(0);
    assert_eq!(text(&record, "status"), "open");
    assert_eq!(
        text(&record, "parent_message_id"),
        turn.user_message.as_str()
    );
    turn.save_response(&[parts::text("An answer")]).await;
    turn.end().await;
    s.names(&turn, &s.b).await;
    turn.touch_user_message().await;
    turn.touch_response(&[parts::text("An answer")]).await;
    let record = s.closed(&turn, "api").await;
    assert_eq!(text(&record, "status"), "settled", "{record:#?}");
    assert_eq!(record.get_i64("repairs").unwrap(), 1);
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_start_that_is_late_is_undone_too() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    s.chosen(&turn, &s.b).await;
    turn.start().await;
    s.names(&turn, &s.b).await;
    turn.finish(&[parts::text("An answer")]).await;
    assert_eq!(text(&s.closed(&turn, "api").await, "status"), "settled");
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_choice_between_the_answer_and_the_end_is_kept() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_response(&[parts::text("An answer")]).await;
    s.chosen(&turn, &s.b).await;
    turn.end().await;
    s.names(&turn, &s.b).await;
    turn.touch_user_message().await;
    assert_eq!(text(&s.closed(&turn, "api").await, "status"), "settled");
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn to_name_the_agent_that_is_there_holds_against_the_end() {
    let s = Scene::new().await;
    let first = s.conversation().await;
    s.chosen(&first, &s.b).await;
    // A tab that does not know sends A once more.
    let turn = first.next(&s.a);
    turn.save_user_message().await;
    s.chosen(&turn, &s.b).await;
    turn.start().await;
    turn.finish(&[parts::text("An answer")]).await;
    eventually("both are closed", async || {
        let records = s.records(&turn).await;
        let closed = |record: &mongodb::bson::Document| text(record, "status") == "settled";
        (records.len() == 2 && records.iter().all(closed)).then_some(())
    })
    .await;
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_later_turn_is_not_undone() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    s.chosen(&turn, &s.b).await;
    let later = turn.next(&s.c);
    later.save_user_message().await;
    later.start().await;
    let record = s.closed(&turn, "api").await;
    assert_eq!(text(&record, "status"), "superseded", "{record:#?}");
    later.finish(&[parts::text("An answer")]).await;
    s.names(&later, &s.c).await;
}

#[tokio::test]
async fn the_choice_wins_over_a_switch_of_the_same_turn_that_is_learned_later() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    s.chosen(&turn, &s.b).await;
    turn.tool_writes(&s.c).await;
    turn.finish(&call(&s.c, &turn)).await;
    let tool = s.closed(&turn, "tool").await;
    assert_eq!(text(&tool, "status"), "superseded", "{tool:#?}");
    assert_eq!(text(&s.closed(&turn, "api").await, "status"), "settled");
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn the_choice_wins_over_a_switch_of_the_same_turn_that_is_known() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_response(&call(&s.c, &turn)).await;
    s.names(&turn, &s.c).await;
    s.chosen(&turn, &s.b).await;
    let tool = s.closed(&turn, "tool").await;
    assert_eq!(text(&tool, "status"), "superseded");
    assert_eq!(text(&tool, "detail"), "the user chose another agent");
    turn.end().await;
    s.names(&turn, &s.b).await;
    turn.touch_user_message().await;
    turn.touch_response(&call(&s.c, &turn)).await;
    assert_eq!(text(&s.closed(&turn, "api").await, "status"), "settled");
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn to_choose_what_the_tool_has_switched_to_adds_no_record() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_response(&call(&s.b, &turn)).await;
    s.names(&turn, &s.b).await;
    s.chosen(&turn, &s.b).await;
    turn.end().await;
    turn.touch_user_message().await;
    assert_eq!(text(&s.closed(&turn, "tool").await, "status"), "settled");
    assert_eq!(s.records(&turn).await.len(), 1);
}

#[tokio::test]
async fn a_switch_of_a_later_answer_wins_over_a_choice_before_it() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    s.chosen(&turn, &s.b).await;
    turn.finish(&[parts::text("An answer")]).await;
    assert_eq!(text(&s.closed(&turn, "api").await, "status"), "settled");
    // The same message is answered once more, and that answer switches.
    let again = turn.regenerated(&s.b);
    again.finish(&call(&s.c, &again)).await;
    assert_eq!(text(&s.closed(&turn, "tool").await, "status"), "settled");
    s.names(&turn, &s.c).await;
}

#[tokio::test]
async fn the_last_of_two_choices_in_a_turn_is_kept() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    s.chosen(&turn, &s.b).await;
    s.chosen(&turn, &s.c).await;
    turn.finish(&[parts::text("An answer")]).await;
    s.names(&turn, &s.c).await;
    eventually("both are closed", async || {
        let records = s.records(&turn).await;
        let statuses: Vec<_> = records
            .iter()
            .map(|r| r.get_str("status").unwrap())
            .collect();
        (statuses == ["superseded", "settled"]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_choice_is_guarded_by_the_next_process_too() {
    let mut s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    s.chosen(&turn, &s.b).await;
    s.baton.kill();
    turn.save_response(&[parts::text("An answer")]).await;
    turn.end().await;
    s.baton.restart().await;
    s.names(&turn, &s.b).await;
    turn.touch_user_message().await;
    assert_eq!(text(&s.closed(&turn, "api").await, "status"), "settled");
}

#[tokio::test]
async fn a_choice_made_at_one_instance_ends_the_guard_of_another() {
    let s = Scene::new().await;
    let other = Baton::start_with(&s.db, &super::SETTINGS).await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    s.chosen(&turn, &s.b).await;
    let choice = s.patch(&turn.conversation, &s.c.id);
    assert_eq!(choice.send(other.address()).await.status, 200);
    turn.finish(&[parts::text("An answer")]).await;
    eventually("all are closed", async || {
        let open = doc! { "conversation_id": &turn.conversation, "status": "open" };
        let open = s.db.switches().count_documents(open).await.unwrap();
        (open == 0).then_some(())
    })
    .await;
    s.names(&turn, &s.c).await;
}
