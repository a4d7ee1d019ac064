//! The answers of targets, in the records of their switches.

use futures::TryStreamExt;
use mongodb::{
    bson::{Bson, Document, doc, oid::ObjectId},
    error::Result,
    options::ReturnDocument,
};

use super::{
    answer::{Answer, Stage},
    record::Switch,
    store::Store,
};
use crate::librechat::{AgentId, ConversationId, MessageId, join::Pair};

impl Store {
    /// Claims a settled switch's answer, for one claimant among all tabs and instances. `None`:
    /// somebody has it already, or the switch is not what it was.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn claim_answer(
        &self,
        id: ObjectId,
        to: &AgentId,
        answer: &Answer,
    ) -> Result<Option<Switch>> {
        let answer = mongodb::bson::serialize_to_document(answer)?;
        let fields: Document = answer
            .into_iter()
            .map(|(name, value)| (format!("answer.{name}"), value))
            .collect();
        self.switches
            .find_one_and_update(
                doc! { "_id": id, "to_agent": to, "status": "settled", "answer": Bson::Null },
                doc! { "$set": fields, "$currentDate": { "answer.claimed_at": true } },
            )
            .return_document(ReturnDocument::After)
            .await
    }

    /// LibreChat has begun a claimed answer, as the generation with this `generationCreatedAt`.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn answer_begun(&self, id: ObjectId, generation: Option<i64>) -> Result<()> {
        let mut set = doc! { "answer.stage": "begun" };
        if let Some(generation) = generation {
            set.insert("answer.generation", generation);
        }
        self.switches
            .update_one(
                doc! { "_id": id, "answer.stage": "claimed" },
                doc! { "$set": set },
            )
            .await
            .map(|_| ())
    }

    /// An open answer has come to its end. `false`: it had already.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn answer_ended(
        &self,
        id: ObjectId,
        stage: Stage,
        detail: Option<&str>,
    ) -> Result<bool> {
        let stage = match stage {
            Stage::Claimed | Stage::Begun => return Ok(false),
            Stage::Done => "done",
            Stage::Failed => "failed",
        };
        let mut set = doc! { "answer.stage": stage };
        if let Some(detail) = detail {
            set.insert("answer.detail", detail);
        }
        let ended = self
            .switches
            .update_one(open(doc! { "_id": id }), doc! { "$set": set })
            .await?;
        Ok(ended.matched_count == 1)
    }

    /// The conversation's switch whose answer is being given by the gateway.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn being_answered(&self, conversation: &ConversationId) -> Result<Option<Switch>> {
        self.switches
            .find_one(open(
                doc! { "conversation_id": conversation, "answer.way": "splice" },
            ))
            .sort(doc! { "created_at": -1 })
            .await
    }

    /// The conversation's switch that was made in this generation, and answered by another.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn answered_after(
        &self,
        conversation: &ConversationId,
        predecessor: i64,
    ) -> Result<Option<Switch>> {
        self.switches
            .find_one(doc! {
                "conversation_id": conversation, "answer.predecessor": predecessor,
                "answer.way": "splice",
            })
            .await
    }

    /// The conversation's switch that was made in this generation, or is answered by it.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn answered_in(
        &self,
        conversation: &ConversationId,
        generation: i64,
    ) -> Result<Option<Switch>> {
        self.switches
            .find_one(doc! {
                "conversation_id": conversation, "answer.way": "splice",
                "$or": [
                    { "answer.predecessor": generation }, { "answer.generation": generation },
                ],
            })
            .await
    }

    /// The switch whose answer the client sends this message for.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn sent_again(
        &self,
        conversation: &ConversationId,
        message: &MessageId,
    ) -> Result<Option<Switch>> {
        self.switches
            .find_one(doc! {
                "conversation_id": conversation, "answer.message_id": message,
                "answer.way": "resend",
            })
            .await
    }

    /// All open answers that the gateway gives.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn open_answers(&self) -> Result<Vec<Switch>> {
        self.switches
            .find(open(doc! { "answer.way": "splice" }))
            .await?
            .try_collect()
            .await
    }

    /// The switches made in an answer are shown in the response that it was joined to.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn shown_in(&self, pair: &Pair, response: Option<ObjectId>) -> Result<()> {
        let mut set = doc! { "shown_in": &pair.response };
        if let Some(response) = response {
            set.insert("response", response);
        }
        self.switches
            .update_many(
                doc! {
                    "user": &pair.key.user, "conversation_id": &pair.key.conversation,
                    "message_id": &pair.answer,
                },
                doc! { "$set": set },
            )
            .await
            .map(|_| ())
    }

    /// The calls that a response was found to hold count as seen in the one that it was joined to.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn calls_seen(&self, id: ObjectId, calls: &[String]) -> Result<()> {
        self.switches
            .update_one(
                doc! { "_id": id },
                doc! { "$addToSet": { "calls": { "$each": calls } } },
            )
            .await
            .map(|_| ())
    }
}

fn open(mut filter: Document) -> Document {
    filter.insert("answer.stage", doc! { "$in": ["claimed", "begun"] });
    filter
}
